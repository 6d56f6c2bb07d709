/**
 * @module
 * One of the four instances: `node instance.js <name> <folder> [--without-oncekey]`.
 *
 * Each has the same schedule and fires at the same time as the others. In production it would be `"0 3 * * *"`; here a night is two
 * seconds long.
 */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Cron } from "croner";
import Database from "libsql";
import { createIdempotency } from "oncekey";
import { oncePerOccurrence } from "oncekey/jobs/croner";
import { fromLibsql, sqliteStore } from "oncekey/stores/sqlite";
import { openOutbox } from "./outbox.js";

const SCHEDULE = "*/2 * * * * *";
const COLLECTING_MS = 800;

const [, , instance = "", folder = "", mode] = process.argv;
const outbox = openOutbox(join(folder, "outbox"));

interface Night {
  readonly plannedAt: Date;
  readonly attempt: number;
  /** Throws if another instance has taken over, because this one stood still for too long. */
  confirm(): Promise<void>;
}

/** The job: first what takes long, then what must happen once. */
async function sendReport({ plannedAt, attempt, confirm }: Night): Promise<void> {
  const line = { plannedAt: plannedAt.getTime(), instance, attempt };
  outbox.append({ kind: "begun", ...line });
  await delay(COLLECTING_MS);
  await confirm();
  outbox.append({ kind: "sent", ...line });
}

if (mode === "--without-oncekey") {
  new Cron(SCHEDULE, { timezone: "UTC" }, async (self: Cron) => {
    const [plannedAt = new Date()] = self.previousRuns(1, new Date(Date.now() + 1));
    await sendReport({ plannedAt, attempt: 1, confirm: async () => undefined });
  });
} else {
  const store = sqliteStore(fromLibsql(() => new Database(join(folder, "oncekey.db"))));
  const idempotency = createIdempotency({ store, leaseMs: 4_000 });
  const report = oncePerOccurrence(
    idempotency,
    { job: "nightly-report", overlap: "queue", missed: "all", windowMs: 60_000 },
    sendReport,
  );
  const cron = new Cron(SCHEDULE, { timezone: "UTC" }, report);
  void report.catchUp(cron);
}

process.on("disconnect", () => process.exit());
process.send?.("up");
