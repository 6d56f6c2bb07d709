/**
 * What an application meets that joins its own transactions on a real server: isolation, failed transactions, and a former holder.
 */
import { createIdempotency, isOncekeyError } from "oncekey";
import { fromPg } from "oncekey/stores/postgres";
import type { Pool, PoolClient } from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { claimRequest } from "../../../src/testing/requests.js";
import { deferred } from "../../core/processes.js";
import { postgresUrl } from "../support/servers.js";
import { openPool, openStore } from "./fixture.js";
import { sleep } from "./subject.js";

const url = await postgresUrl();
const call = (key = "k", input: unknown = 1) => ({ operation: "pay", key, input });

async function opened(policy: { readonly leaseMs?: number } = {}) {
  const pool = openPool(url);
  const { store, tablePrefix, another } = await openStore(fromPg(pool));
  const events: string[] = [];
  const onEvent = ({ type }: { readonly type: string }) => void events.push(type);
  const idempotency = createIdempotency({ store, scope: "global", onEvent, ...policy });
  onTestFinished(async () => void (await idempotency.close({ graceMs: 0 })));
  // Its connections are there before the first lease counts.
  await idempotency.list();
  const payments = `${tablePrefix}payments`;
  await pool.query(`CREATE TABLE ${payments} (id text PRIMARY KEY)`);
  const pay = (client: { query(text: string, values: string[]): unknown }, id: string) =>
    client.query(`INSERT INTO ${payments} (id) VALUES ($1)`, [id]);
  const paid = async () =>
    (await pool.query<{ id: string }>(`SELECT id FROM ${payments} ORDER BY id`)).rows.map(({ id }) => id);
  return { pool, idempotency, events, pay, paid, another };
}

async function begin(pool: Pool, isolation = "READ COMMITTED"): Promise<PoolClient> {
  const client = await pool.connect();
  onTestFinished(() => client.release(true));
  await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
  return client;
}

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.catch((error: unknown) => (isOncekeyError(error) ? error.code : error));

describe("within a transaction on Postgres", () => {
  it("commits claim, rows and completion with the application's own rows", async () => {
    const { pool, idempotency, events, pay, paid } = await opened();
    const tx = await begin(pool);
    await pay(tx, "own");
    const within = idempotency.within(tx);
    const receipt = await within.run(call(), async ({ transaction }) => {
      expect(transaction).toBe(tx);
      await pay(tx, "work");
      return { receipt: 7 };
    });
    expect([receipt, await paid(), events]).toEqual([{ receipt: 7 }, [], []]);
    await tx.query("COMMIT");
    within.committed();
    expect(await paid()).toEqual(["own", "work"]);
    expect(events).toEqual(["claimed", "completed", "finished"]);
    expect(await idempotency.runWithOutcome(call(), () => "no")).toMatchObject({
      kind: "replayed",
      result: receipt,
    });
  });

  it("undoes work that fails in the database, and the transaction goes on", async () => {
    const { pool, idempotency, pay, paid } = await opened();
    const tx = await begin(pool);
    await pay(tx, "own");
    const failed = idempotency.within(tx).run(call(), async () => {
      await pay(tx, "work");
      await pay(tx, "own");
    });
    await expect(failed).rejects.toMatchObject({ code: "23505" });
    await pay(tx, "more");
    await tx.query("COMMIT");
    expect(await paid()).toEqual(["more", "own"]);
  });

  it("lets a READ COMMITTED transaction replay what was committed after it began", async () => {
    const { pool, idempotency, pay, paid } = await opened();
    const tx = await begin(pool);
    await pay(tx, "own");
    await idempotency.run(call(), () => "younger");
    expect(await idempotency.within(tx).run(call(), () => "no")).toBe("younger");
    expect(await codeOf(idempotency.within(tx).run(call("k", 2), () => "no"))).toBe("KEY_REUSED");
    await tx.query("COMMIT");
    expect(await paid()).toEqual(["own"]);
  });

  for (const isolation of ["REPEATABLE READ", "SERIALIZABLE"]) {
    it(`tells a ${isolation} transaction to be repeated, if the record is younger than its snapshot`, async () => {
      const { pool, idempotency } = await opened();
      const tx = await begin(pool, isolation);
      await tx.query("SELECT 1");
      await idempotency.run(call(), () => "younger");
      expect(await codeOf(idempotency.within(tx).run(call(), () => "no"))).toBe("RETRY_TRANSACTION");
      await tx.query("ROLLBACK");
      const again = await begin(pool, isolation);
      expect(await idempotency.within(again).run(call(), () => "no")).toBe("younger");
      await again.query("COMMIT");
    });
  }

  it("is in flight for others until it ends, inside of transactions and outside", async () => {
    const { pool, idempotency } = await opened();
    const tx = await begin(pool);
    await idempotency.within(tx).run(call(), () => "first");
    const refused = { ...call(), onInFlight: "reject" } as const;
    expect(await codeOf(idempotency.run(refused, () => "no"))).toBe("IN_FLIGHT");
    const other = await begin(pool);
    expect(await codeOf(idempotency.within(other).run(refused, () => "no"))).toBe("IN_FLIGHT");
    const waiting = idempotency.run(call(), () => "no");
    await sleep(100);
    await tx.query("COMMIT");
    expect(await waiting).toBe("first");
    expect(await idempotency.within(other).run(refused, () => "no")).toBe("first");
  });

  it("is claimed for who asks how a key stands, and absent again once the transaction is rolled back", async () => {
    const pool = openPool(url);
    const { store, another } = await openStore(fromPg(pool));
    const tx = await begin(pool);
    const request = claimRequest();
    const free = claimRequest({ key: `${request.key.slice(0, -2)}AA` as never });
    await store.join?.(tx).claim([request], 0);
    const stateOf = async () => (await another().status([free.key, request.key])).map(({ state }) => state);
    expect(await stateOf()).toEqual(["absent", "claimed"]);
    await tx.query("ROLLBACK");
    expect(await stateOf()).toEqual(["absent", "absent"]);
  });

  it("puts the transaction's own settings back", async () => {
    const { pool, idempotency } = await opened();
    const tx = await begin(pool);
    await tx.query("SET LOCAL lock_timeout = '7s'");
    await idempotency.within(tx).run(call(), () => "done");
    const { rows } = await tx.query("SHOW lock_timeout");
    expect(rows).toEqual([{ lock_timeout: "7s" }]);
  });

  it("refuses what is in no transaction, and one that has failed before", async () => {
    const { pool, idempotency } = await opened();
    expect(await codeOf(idempotency.within(pool).run(call(), () => "no"))).toBe("GUARANTEE_UNSUPPORTED");
    const tx = await begin(pool);
    await tx.query("SELECT 1 / 0").catch(() => undefined);
    expect(await codeOf(idempotency.within(tx).run(call(), () => "no"))).toBe("TRANSACTION_ABORTED");
    expect(() => idempotency.within({} as never)).toThrowError(/query\(text, values\)/);
  });

  it("notices a transaction that the work has ended, or has taken back", async () => {
    const { pool, idempotency, paid, pay } = await opened();
    const ended = await begin(pool);
    const committing = idempotency
      .within(ended)
      .run(call("a"), () => ended.query("ROLLBACK").then(() => "lost"));
    expect(await codeOf(committing)).toBe("TRANSACTION_ABORTED");
    const tx = await begin(pool);
    await tx.query("SAVEPOINT mine");
    const undoing = idempotency.within(tx).run(call("b"), async () => {
      await pay(tx, "work");
      await tx.query("ROLLBACK TO SAVEPOINT mine");
      return "lost";
    });
    expect(await codeOf(undoing)).toBe("TRANSACTION_ABORTED");
    expect(await paid()).toEqual([]);
    expect(await idempotency.runWithOutcome(call("a"), () => "anew")).toMatchObject({ kind: "executed" });
  });

  it("runs many transactions on one key once", async () => {
    const { pool, idempotency, pay, paid } = await opened();
    const results = await Promise.all(
      Array.from({ length: 4 }, async (_, index) => {
        const tx = await begin(pool);
        const result = await idempotency.within(tx).run(call(), async () => {
          await pay(tx, `work ${index}`);
          return index;
        });
        await tx.query("COMMIT");
        return result;
      }),
    );
    expect(new Set(results).size).toBe(1);
    expect(await paid()).toHaveLength(1);
  });
});

describe("guard on Postgres", () => {
  it("keeps the claim while the transaction lives, past its lease, and lets the heartbeat through", async () => {
    const { pool, idempotency, events, pay, paid } = await opened({ leaseMs: 4_000 });
    const answer = await idempotency.run(call(), async ({ guard, confirm }) => {
      const tx = await begin(pool);
      await guard(tx);
      await pay(tx, "work");
      await sleep(5_000);
      await confirm();
      await tx.query("COMMIT");
      return "done";
    });
    expect([answer, await paid()]).toEqual(["done", ["work"]]);
    expect(events).not.toContain("lease-lost");
  });

  it("stops a former holder: its rows are rolled back", async () => {
    const { pool, idempotency, pay, paid, another } = await opened();
    const successor = createIdempotency({ store: another(), scope: "global" });
    const freed = deferred();
    const succeeding = freed.promise.then(() => successor.run(call(), () => "by the successor"));
    const told = await idempotency.run(call(), async ({ guard }) => {
      const [record] = (await idempotency.list({ operation: "pay" })).records;
      await idempotency.release(
        { recordKey: record?.key as never },
        { by: "ops", reason: "stuck", evenIfLive: true },
      );
      freed.resolve();
      await succeeding;
      const tx = await begin(pool);
      const code = await codeOf(guard(tx).then(() => pay(tx, "late")));
      await tx.query("ROLLBACK");
      return code;
    });
    // Its own result is worth nothing: it gets the one that is on record.
    expect([told, await paid()]).toEqual(["by the successor", []]);
    const codes: unknown[] = [];
    await idempotency.run(call("other"), async ({ guard }) => codes.push(await codeOf(guard(pool))));
    expect(codes).toEqual(["GUARANTEE_UNSUPPORTED"]);
    await successor.close({ graceMs: 0 });
  });
});
