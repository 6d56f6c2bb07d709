/**
 * Steps of work that writes through a transaction, its own or its caller's, and of handlers of requests.
 */
import { createIdempotency, type OncekeyError, type Work } from "oncekey";
import { idempotent } from "oncekey/http/fetch";
import { memoryStore } from "oncekey/stores/memory";
import type { SqliteTransaction } from "oncekey/stores/sqlite";
import { describe, expect, it } from "vitest";
import type { Store, TransactionRequest } from "../../src/core/store.js";
import { openConnection, openStore, temporaryFile } from "../stores/sqlite-fixture.js";
import { call, opened } from "./database.js";
import { codeOf, declined, deferred } from "./processes.js";

const CALL = { operation: "charge", key: "k", input: 1 } as const;

/** An instance that is exactly-once on a file, and how many rows are committed there. */
function onFile(changed: (store: Store<SqliteTransaction>) => Store<SqliteTransaction> = (store) => store) {
  const path = temporaryFile();
  const application = openConnection(path);
  application.exec("PRAGMA journal_mode = wal");
  application.exec("CREATE TABLE payments (claim TEXT NOT NULL)");
  const store = changed(openStore(path));
  const idempotency = createIdempotency({ store, scope: "global", guarantee: "exactly-once" });
  const pay = (transaction: SqliteTransaction) =>
    transaction.run("INSERT INTO payments (claim) VALUES (?)", ["paid"]);
  return { idempotency, pay, rows: () => application.prepare("SELECT claim FROM payments").all([]).length };
}

describe("a step of work with a transaction of its own", () => {
  it("stays done when the rows are rolled back, and is not done again", async () => {
    const { idempotency, pay, rows } = onFile();
    const asked: number[] = [];
    const work = (fails: boolean) =>
      codeOf(
        idempotency.run(CALL, async ({ step, transaction }) => {
          const quote = await step("quote", (inner) => {
            expect(inner.guarantee).toBe("at-least-once");
            return asked.push(1);
          });
          await pay(transaction);
          if (fails) throw declined;
          return quote;
        }),
      );
    expect([await work(true), rows()]).toEqual([declined, 0]);
    expect([await work(false), rows()]).toEqual([1, 1]);
    expect(asked).toHaveLength(1);
  });

  it("is done once though the database refuses to commit, and the work is repeated", async () => {
    let refusals = 2;
    const { idempotency, pay, rows } = onFile((store) => ({
      ...store,
      begin(request: TransactionRequest) {
        const session = store.begin?.(request);
        if (session === undefined) throw new Error("It has transactions");
        return {
          ...session,
          async commit(outcome, what) {
            refusals -= 1;
            if (refusals < 0) return session.commit(outcome, what);
            await session.rollback();
            return { kind: "refused", reason: "serialization" };
          },
        };
      },
    }));
    const asked: number[] = [];
    const result = await idempotency.run(CALL, async ({ step, transaction }) => {
      const quote = await step("quote", () => asked.push(1));
      await pay(transaction);
      return quote;
    });
    expect([result, asked.length, rows()]).toEqual([1, 1, 1]);
  });

  it("after the first statement ends the transaction on SQLite, which has one writer, and loses nothing", async () => {
    const { idempotency, pay, rows } = onFile();
    const asked: number[] = [];
    const work = (early: boolean) =>
      codeOf(
        idempotency.run(CALL, async ({ step, transaction }) => {
          if (!early) await pay(transaction);
          const quote = await step("quote", () => asked.push(1));
          await pay(transaction);
          return quote;
        }),
      );
    expect(["TRANSACTION_CLOSED", "STORE_UNAVAILABLE"]).toContain(await work(false));
    expect(rows()).toBe(0);
    expect([await work(true), rows()]).toEqual([asked.length, 1]);
    expect(asked).toHaveLength(1);
  });
});

describe("a step of work in its caller's transaction", () => {
  it("stays done when the caller does not commit", async () => {
    const { database, idempotency } = opened();
    const asked: number[] = [];
    const work = () =>
      idempotency.within(database.begin()).run(call(), async ({ step, transaction }) => {
        transaction.insert("paid");
        return step("quote", () => asked.push(1));
      });
    expect([await work(), await work()]).toEqual([1, 1]);
    expect([asked.length, database.rows()]).toEqual([1, []]);
  });

  it("that another attempt is still in is waited for no longer than the call waits for anything", async () => {
    const { database, idempotency } = opened({ onInFlight: "reject" });
    const end = deferred<string>();
    const work = () =>
      codeOf(
        idempotency.within(database.begin()).run(call(), ({ step }) => step("quote", () => end.promise)),
      );
    const first = work();
    await database.clock.settle();
    expect(await work()).toBe("STEP_IN_FLIGHT");
    end.resolve("quoted");
    expect(await first).toBe("quoted");
  });
});

describe("a step of a handler", () => {
  it("is found on its request, and is not done again when the handler failed after it", async () => {
    const idempotency = createIdempotency({ store: memoryStore({ sweepIntervalMs: 0 }), scope: "global" });
    const charged: number[] = [];
    const handle = idempotent(idempotency, { operation: "charge" }, async (request) => {
      const count = await idempotency.workOf(request).step("charge", () => charged.push(1));
      return count === charged.length && failing.pop()
        ? new Response("", { status: 503 })
        : Response.json(count);
    });
    const failing = [true];
    const send = () => {
      const headers = { "Idempotency-Key": "k-1" };
      return handle(new Request("http://shop.test/charges", { method: "POST", headers }));
    };
    expect((await send()).status).toBe(503);
    const answer = await send();
    expect([answer.status, await answer.json(), charged.length]).toEqual([200, 1, 1]);
    expect((await send()).headers.get("Idempotency-Replayed")).toBe("true");
  });

  it("that is refused makes no answer that is kept, whatever its refusal would be for a request", async () => {
    const idempotency = createIdempotency({ store: memoryStore({ sweepIntervalMs: 0 }), scope: "global" });
    let step = async (work: Work): Promise<unknown> => work.step("charge", () => () => "no data");
    const handle = idempotent(idempotency, { operation: "charge" }, async (request) => {
      try {
        await step(idempotency.workOf(request));
        return new Response("", { status: 500 });
      } catch (error) {
        // As a framework does with an error that has a status.
        return Response.json({}, { status: (error as OncekeyError).status });
      }
    });
    const send = async () => {
      const headers = { "Idempotency-Key": "k-1" };
      const request = new Request("http://shop.test/charges", { method: "POST", headers });
      return (await handle(request)).status;
    };
    expect([await send(), await send(), await send()]).toEqual([500, 500, 500]);
    // What it would be if it came as it is.
    step = () => Promise.reject({ status: 409 });
    expect(await send()).toBe(409);
    step = () => Promise.resolve();
    expect(await send()).toBe(409);
  });
});
