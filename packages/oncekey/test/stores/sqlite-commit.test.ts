import Database from "libsql";
import { fromLibsql, type SqliteConnection, sqliteStore } from "oncekey/stores/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { claimOf, openConnection, resultOf, temporaryFile, transactionOf } from "./sqlite-fixture.js";

describe("a COMMIT whose answer is lost", () => {
  /** A store whose work connection fails at COMMIT: before it, after it, or after it and with nobody to ask. */
  async function openFailing(when: "before" | "after" | "after, unasked") {
    const path = temporaryFile();
    const application = openConnection(path);
    application.exec("PRAGMA journal_mode = wal; CREATE TABLE payments (amount INTEGER NOT NULL)");
    let failing = false;
    const driver = fromLibsql(() => new Database(path));
    const open = (): SqliteConnection => {
      const connection = driver.open();
      return {
        ...connection,
        exec(sql) {
          if (!failing || sql !== "COMMIT") return connection.exec(sql);
          if (when === "before") connection.exec("ROLLBACK");
          else connection.exec("COMMIT");
          throw new Error("disk I/O error");
        },
        prepare(sql) {
          const statement = connection.prepare(sql);
          const lost = () => failing && when === "after, unasked" && !connection.inTransaction();
          return {
            ...statement,
            get(params) {
              if (lost()) throw new Error("disk I/O error");
              return statement.get(params);
            },
          };
        },
      };
    };
    const store = sqliteStore({ name: "failing", open }, { sweepIntervalMs: 0 });
    onTestFinished(() => store.close());
    const claim = claimOf("a");
    await store.claim(claim);
    const session = store.begin?.(transactionOf(claim));
    await session?.handle.run("INSERT INTO payments VALUES (?)", [5]);
    failing = true;
    const answer = await session?.commit(resultOf("paid"), "everything");
    failing = false;
    const repeat = await store.claim(claimOf("a"));
    return { answer, repeat, payments: application.prepare("SELECT * FROM payments").all([]).length };
  }

  it("landed: the record says so", async () => {
    const { answer, repeat, payments } = await openFailing("after");
    expect([answer, repeat, payments]).toMatchObject([{ kind: "committed" }, { kind: "completed" }, 1]);
  });

  it("did not land: the record says so too, and nothing was kept", async () => {
    const { answer, repeat, payments } = await openFailing("before");
    expect([answer, repeat, payments]).toMatchObject([
      { kind: "refused", reason: "disk I/O error" },
      { kind: "in-flight" },
      0,
    ]);
  });

  it("cannot be told while the record cannot be read", async () => {
    const { answer, repeat, payments } = await openFailing("after, unasked");
    expect([answer, repeat, payments]).toMatchObject([{ kind: "undecided" }, { kind: "completed" }, 1]);
  });
});
