/**
 * A job whose rows commit with its completion, on SQLite: one write at a time, so that the job's turn must not be asked for, or given
 * back, in the middle of its transaction.
 */
import { createIdempotency, type Guarantee } from "oncekey";
import { type JobWork, oncePerOccurrence } from "oncekey/jobs";
import type { SqliteTransaction } from "oncekey/stores/sqlite";
import { expect, expectTypeOf, it } from "vitest";
import { openConnection, openStore, temporaryFile } from "../stores/sqlite-fixture.js";

it("commits its rows and its completion together, with a turn of its own", async () => {
  const path = temporaryFile();
  const application = openConnection(path);
  application.exec("PRAGMA journal_mode = wal");
  application.exec("CREATE TABLE ledger (day TEXT NOT NULL)");
  let failures = 1;
  const start = () =>
    oncePerOccurrence(
      createIdempotency({ store: openStore(path), guarantee: "exactly-once" }),
      { job: "close-day", everyMs: 3_600_000, overlap: "queue", retryDelayMs: 10 },
      async ({ transaction, plannedAt }) => {
        await transaction.run("INSERT INTO ledger (day) VALUES (?)", [plannedAt.toISOString()]);
        failures -= 1;
        if (failures === 0) throw new Error("its row is rolled back");
      },
    );
  const instances = [start(), start()];
  await Promise.all(instances.map((fire) => fire()));
  await Promise.all(instances.map((fire) => fire()));
  const rows = application.prepare("SELECT day FROM ledger").all([]) as { readonly day: string }[];
  expect(rows.length).toBeGreaterThan(0);
  expect(new Set(rows.map(({ day }) => day)).size).toBe(rows.length);
});

it("has the transaction in its type under exactly-once, and only there", () => {
  const typesOf = (path: string) => {
    const store = openStore(path);
    oncePerOccurrence(
      createIdempotency({ store, guarantee: "exactly-once" }),
      { job: "close-day", everyMs: 60_000 },
      (work) => expectTypeOf(work.transaction).toEqualTypeOf<SqliteTransaction>(),
    );
    oncePerOccurrence(createIdempotency({ store }), { job: "close-day", everyMs: 60_000 }, (work) => {
      expectTypeOf(work.transaction).toEqualTypeOf<undefined>();
      expectTypeOf(work.plannedAt).toEqualTypeOf<Date>();
    });
    oncePerOccurrence(
      createIdempotency({ store }),
      { job: "close-day", everyMs: 60_000, guarantee: "exactly-once" },
      (work) => expectTypeOf(work.transaction).toEqualTypeOf<SqliteTransaction>(),
    );
  };
  expectTypeOf<JobWork<never, Guarantee>["plannedAt"]>().toEqualTypeOf<Date>();
  typesOf(temporaryFile());
});
