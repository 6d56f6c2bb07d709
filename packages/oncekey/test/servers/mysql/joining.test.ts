import { setTimeout as sleep } from "node:timers/promises";
import type { PoolConnection } from "mysql2/promise";
import { createIdempotency } from "oncekey";
import { describe, expect, it, onTestFinished } from "vitest";
import { claimRequest, repeatOf } from "../../../src/testing/requests.js";
import { mariadbUrl, ownServer } from "../support/servers.js";
import { completionOf, openPool, openRows, openStore } from "./fixture.js";

const url = await mariadbUrl();

async function prepared(at = url) {
  const pool = openPool(at);
  const opened = await openStore(at);
  const open = async (isolation: string): Promise<PoolConnection> => {
    const connection = await pool.getConnection();
    onTestFinished(() => connection.release());
    await connection.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${isolation}`);
    return connection;
  };
  return { ...opened, pool, open, rows: await openRows(pool) };
}

describe("a transaction of the application's", () => {
  it("of REPEATABLE READ has to be repeated if a record is younger than its snapshot", async () => {
    const { store, open } = await prepared();
    const connection = await open("REPEATABLE READ");
    const request = claimRequest();
    await connection.beginTransaction();
    const joined = store.join?.(connection);
    await joined?.savepoint();
    // The first look makes the snapshot.
    expect(await joined?.claim([claimRequest()], 0)).toMatchObject([{ kind: "claimed" }]);
    await store.claim(request);
    await store.complete(completionOf(request));
    await expect(joined?.claim([repeatOf(request)], 0)).rejects.toMatchObject({ code: "RETRY_TRANSACTION" });
    await connection.rollback();
    await connection.beginTransaction();
    const again = store.join?.(connection);
    await again?.savepoint();
    expect(await again?.claim([repeatOf(request)], 0)).toMatchObject([{ kind: "completed" }]);
    await connection.rollback();
  });

  it("that is none is refused, and nothing is left of the try", async () => {
    const { store, open } = await prepared();
    const connection = await open("READ COMMITTED");
    await expect(store.join?.(connection).savepoint()).rejects.toMatchObject({
      code: "GUARANTEE_UNSUPPORTED",
    });
    const held = claimRequest();
    await store.claim(held);
    await expect(store.pin?.(connection, { ...held, waitMs: 0 })).rejects.toMatchObject({
      code: "GUARANTEE_UNSUPPORTED",
    });
    expect(() => store.join?.({} as never)).toThrow(/query\(sql, values\)/);
  });

  it("of the application's other database reaches the records all the same", async () => {
    const { store, open } = await prepared();
    const connection = await open("READ COMMITTED");
    const own = new URL(url).pathname.slice(1);
    await connection.query("USE information_schema");
    await connection.beginTransaction();
    const joined = store.join?.(connection);
    await joined?.savepoint();
    expect(await joined?.claim([claimRequest()], 0)).toMatchObject([{ kind: "claimed" }]);
    await connection.rollback();
    await connection.query(`USE ${own}`);
  });

  it("that a deadlock has ended takes no further statement through what it handed over", async () => {
    const { store, open, pool, rows } = await prepared();
    await pool.query(`INSERT INTO ${rows.table} VALUES ('a', 0), ('b', 0)`);
    const [connection, other] = [await open("READ COMMITTED"), await open("READ COMMITTED")];
    await Promise.all([connection.beginTransaction(), other.beginTransaction()]);
    const joined = store.join?.(connection);
    const before = await joined?.savepoint();
    const handle = joined?.handle as PoolConnection;
    const change = `UPDATE ${rows.table} SET n = n + 1 WHERE id = ?`;
    // The one with more rows to undo is left alive.
    await other.query(`INSERT INTO ${rows.table} VALUES ('c', 0), ('d', 0), ('e', 0), ('f', 0)`);
    await handle.query(change, ["a"]);
    await other.query(change, ["b"]);
    const waiting = handle.query(change, ["b"]);
    const dead = waiting.then(
      () => undefined,
      (error: unknown) => error,
    );
    await sleep(50);
    await other.query(change, ["a"]);
    expect(await dead).toMatchObject({ code: "TRANSACTION_ABORTED" });
    await expect(handle.query(rows.insert, ["late"])).rejects.toMatchObject({ code: "TRANSACTION_ABORTED" });
    await expect(before?.rollback()).rejects.toMatchObject({ code: "TRANSACTION_ABORTED" });
    await other.rollback();
    await connection.rollback();
    expect(await rows.count("late")).toBe(0);
  });

  it("on a server that undoes everything when a wait ends, does not go on as another one", async () => {
    const server = await ownServer("mariadb", { settings: { "innodb-rollback-on-timeout": "ON" } });
    const { store, open, rows } = await prepared(server.url);
    const [first, second] = [await open("READ COMMITTED"), await open("READ COMMITTED")];
    await Promise.all([first.beginTransaction(), second.beginTransaction()]);
    const request = claimRequest();
    const one = store.join?.(first);
    await one?.savepoint();
    await one?.claim([request], 0);
    await second.query(rows.insert, [request.key]);
    const two = store.join?.(second);
    await two?.savepoint();
    await expect(two?.claim([repeatOf(request)], 200)).rejects.toMatchObject({ code: "TRANSACTION_ABORTED" });
    await Promise.all([first.rollback(), second.rollback()]);
    expect(await rows.count(request.key)).toBe(0);
    await store.close();
  });

  it("runs protected work, and its repeat gets the result", async () => {
    const { store, open, rows } = await prepared();
    const idempotency = createIdempotency({ store });
    const connection = await open("READ COMMITTED");
    const options = { operation: "charge", scope: "global", key: "o-1", input: { amount: 10 } } as const;
    for (const expected of [1, 1]) {
      await connection.beginTransaction();
      const result = await idempotency.within(connection).run(options, async ({ transaction }) => {
        await transaction.query(rows.insert, ["o-1"]);
        return { charged: 10 };
      });
      await connection.commit();
      expect(result).toEqual({ charged: 10 });
      expect(await rows.count("o-1")).toBe(expected);
    }
    await idempotency.close();
  });
});

describe("guarded work", () => {
  it("whose claim was taken over cannot commit its rows", async () => {
    const { store, open, rows } = await prepared();
    const idempotency = createIdempotency({ store });
    const connection = await open("REPEATABLE READ");
    const options = { operation: "charge", scope: "global", key: "o-2", input: 1 } as const;
    const late = idempotency.run({ ...options, leaseMs: 400, storeTimeoutMs: 100 }, async ({ guard }) => {
      const [record] = (await store.list({ limit: 10 })).records;
      if (record === undefined) throw new Error("There is a record");
      const { key, version } = record;
      const token = claimRequest().token;
      await store.resolve({ key, version, token, verdict: { kind: "forgotten" }, evenIfLive: true });
      await connection.beginTransaction();
      await guard(connection);
      await connection.query(rows.insert, ["o-2"]);
      await connection.commit();
    });
    await expect(late).rejects.toMatchObject({ code: "LEASE_LOST" });
    await connection.rollback();
    expect(await rows.count("o-2")).toBe(0);
    await idempotency.close();
  });

  it("is renewed while it is pinned, on the row itself", async () => {
    const { store, open } = await prepared();
    const connection = await open("REPEATABLE READ");
    const request = claimRequest({ leaseMs: 30_000 });
    await store.claim(request);
    await connection.beginTransaction();
    expect(await store.pin?.(connection, { ...request, waitMs: 100 })).toEqual({ kind: "pinned" });
    expect(await store.extend({ ...request, leaseMs: 90_000 })).toEqual({ kind: "extended" });
    const info = await store.find(request.key);
    expect(info?.leaseRemainingMs).toBeGreaterThan(80_000);
    await connection.rollback();
  });
});
