import { setTimeout as sleep } from "node:timers/promises";
import type mysql from "mysql2/promise";
import { describe, expect, it } from "vitest";
import { repeatOf } from "../../../src/testing/requests.js";
import { faultProxy } from "../support/fault-proxy.js";
import { mariadbUrl, ownServer } from "../support/servers.js";
import { beginWork, freshPrefix, openPool, openRows, openStore, resultOf } from "./fixture.js";

const url = await mariadbUrl();
const DONE = resultOf("done");

async function prepared(at = url) {
  const pool = openPool(at);
  const opened = await openStore(at);
  return { ...opened, pool, rows: await openRows(pool) };
}

const isCommit = (request: Buffer): boolean => request.includes("COMMIT") && !request.includes("BEGIN");

describe("the three results of COMMIT", () => {
  it.each([
    ["before it has arrived", "cutBeforeNext", "refused", 0],
    ["after it has arrived", "cutAfterNext", "committed", 1],
  ] as const)("lost %s: the record tells which it was", async (_, cut, kind, count) => {
    const { another, rows } = await prepared();
    const proxy = await faultProxy(url);
    const store = another({}, proxy.url);
    const { request, session } = await beginWork(store);
    await session.handle.query(rows.insert, [request.key]);
    const isCut = proxy[cut](isCommit);
    const answer = await session.commit(DONE, "everything");
    await isCut;
    expect(answer.kind).toBe(kind);
    expect(await rows.count(request.key)).toBe(count);
    const state = { refused: "in-flight", committed: "completed" }[kind];
    expect(await store.claim(repeatOf(request))).toMatchObject({ kind: state });
    await store.close();
    await proxy.close();
  });

  it("lost, and the database cannot be asked: undecided", async () => {
    const { another, rows } = await prepared();
    const proxy = await faultProxy(url);
    const store = another({ timeoutMs: 400 }, proxy.url);
    const { request, session } = await beginWork(store);
    await session.handle.query(rows.insert, [request.key]);
    proxy.stall();
    expect(await session.commit(DONE, "everything")).toMatchObject({
      kind: expect.stringMatching(/undecided|refused/),
    });
    expect(await rows.count(request.key)).toBe(0);
    proxy.flow();
    await proxy.close();
  });

  it("a connection that is killed while the work runs: nothing is left, and the work is told", async () => {
    const { store, rows, pool } = await prepared();
    const { request, session } = await beginWork(store);
    await session.handle.query(rows.insert, [request.key]);
    const [[own]] = await session.handle.query<{ id: number }[]>("SELECT CONNECTION_ID() AS id");
    await pool.query(`KILL ${Number(own?.id)}`);
    await sleep(50);
    await expect(session.handle.query("SELECT 1")).rejects.toMatchObject({ code: "TRANSACTION_ABORTED" });
    expect(await session.commit(DONE, "everything")).toMatchObject({ kind: "refused" });
    expect(await rows.count(request.key)).toBe(0);
  });
});

describe("a transaction that MySQL ends by itself", () => {
  it("a deadlock undoes all of it, and no later statement runs", async () => {
    const { store, rows, pool } = await prepared();
    await pool.query(`INSERT INTO ${rows.table} VALUES ('a', 0), ('b', 0)`);
    const [one, two] = [await beginWork(store), await beginWork(store)];
    const change = `UPDATE ${rows.table} SET n = n + 1 WHERE id = ?`;
    await one.session.handle.query(rows.insert, [one.request.key]);
    await one.session.handle.query(change, ["a"]);
    await two.session.handle.query(change, ["b"]);
    const both = await Promise.allSettled([
      one.session.handle.query(change, ["b"]),
      two.session.handle.query(change, ["a"]),
    ]);
    const dead = both.findIndex(({ status }) => status === "rejected");
    expect(both[dead]).toMatchObject({ reason: { code: "TRANSACTION_ABORTED" } });
    const [loser, winner] = dead === 0 ? [one, two] : [two, one];
    expect([loser.session.undoneBy?.(), winner.session.undoneBy?.()]).toEqual([
      expect.stringMatching(/deadlock/i),
      undefined,
    ]);
    await expect(loser.session.handle.query("SELECT 1")).rejects.toMatchObject({
      code: "TRANSACTION_ABORTED",
    });
    expect(await loser.session.commit(DONE, "everything")).toMatchObject({ kind: "refused" });
    expect(await winner.session.commit(DONE, "everything")).toEqual({ kind: "committed" });
  });

  it("on a server that undoes everything when a wait ends, that is noticed", async () => {
    const server = await ownServer("mariadb", { settings: { "innodb-rollback-on-timeout": "ON" } });
    const { store, rows, pool } = await prepared(server.url);
    await pool.query(`INSERT INTO ${rows.table} VALUES ('a', 0)`);
    const blocker = await pool.getConnection();
    await blocker.beginTransaction();
    await blocker.query(`UPDATE ${rows.table} SET n = 1 WHERE id = 'a'`);
    const { request, session } = await beginWork(store, 5_000);
    await session.handle.query("SET SESSION innodb_lock_wait_timeout = 1");
    await session.handle.query(rows.insert, [request.key]);
    await expect(session.handle.query(`UPDATE ${rows.table} SET n = 2 WHERE id = 'a'`)).rejects.toMatchObject(
      { code: "TRANSACTION_ABORTED" },
    );
    await blocker.rollback();
    blocker.release();
    expect(await session.commit(DONE, "everything")).toMatchObject({ kind: "refused" });
    expect(await rows.count(request.key)).toBe(0);
    await store.close();
  });

  it("a failed statement alone changes nothing: the rest commits", async () => {
    const { store, rows } = await prepared();
    const { request, session } = await beginWork(store);
    await session.handle.query(rows.insert, [request.key]);
    await expect(session.handle.query(rows.insert, [request.key])).rejects.toMatchObject({ errno: 1062 });
    expect(await session.commit(DONE, "everything")).toEqual({ kind: "committed" });
    expect(await rows.count(request.key)).toBe(1);
  });
});

describe("what would commit without the record", () => {
  it.each([
    "COMMIT",
    "/* a */ create table x (id int)",
    "INSERT INTO x VALUES (';'); COMMIT",
    "START TRANSACTION",
    "set session autocommit = 1",
    "/*! COMMIT */",
  ])("%s is refused before it runs", async (sql) => {
    const { store, rows } = await prepared();
    const { request, session } = await beginWork(store);
    await session.handle.query(rows.insert, [request.key]);
    await expect(session.handle.query(sql)).rejects.toMatchObject({ code: "CONFIGURATION_INVALID" });
    await session.rollback();
    expect(await rows.count(request.key)).toBe(0);
  });

  it("a procedure that commits is noticed at the end: nobody says that nothing happened", async () => {
    const { store, rows, pool } = await prepared();
    const name = `${freshPrefix()}commits`;
    await pool.query(`CREATE PROCEDURE ${name}() COMMIT`);
    const { request, session } = await beginWork(store);
    await session.handle.query(rows.insert, [request.key]);
    await session.handle.query(`CALL ${name}()`);
    expect(await session.commit(DONE, "everything")).toEqual({ kind: "undecided" });
    expect(await store.claim(repeatOf(request))).toMatchObject({ kind: "in-flight" });
  });
});

describe("time and room", () => {
  it("a statement that runs when its transaction is too old is ended, also on the server", async () => {
    const { store, pool } = await prepared();
    const { session } = await beginWork(store, 300);
    const running = session.handle.query("SELECT SLEEP(20) AS marked_to_be_ended");
    await expect(running).rejects.toMatchObject({ code: "TRANSACTION_CLOSED" });
    expect(await session.commit(DONE, "everything")).toMatchObject({ kind: "refused" });
    await sleep(200);
    const [left] = await pool.query(
      "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP(20) AS marked%'",
    );
    expect(left).toEqual([]);
  });

  it("no connection is free in time: the work is told, and nothing was done", async () => {
    const { another, rows } = await prepared();
    const store = another({ transactions: 1, timeoutMs: 300 });
    const first = await beginWork(store);
    await first.session.handle.query(rows.insert, [first.request.key]);
    const second = await beginWork(store);
    await expect(second.session.handle.query("SELECT 1")).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
    });
    await second.session.rollback();
    expect(await first.session.commit(DONE, "everything")).toEqual({ kind: "committed" });
    const third = await beginWork(store);
    await third.session.handle.query(rows.insert, [third.request.key]);
    expect(await third.session.commit(DONE, "everything")).toEqual({ kind: "committed" });
  });

  it("a connection that the server dropped while nobody used it is replaced", async () => {
    const { another, rows } = await prepared();
    const proxy = await faultProxy(url);
    const store = another({ transactions: 1 }, proxy.url);
    for (let n = 0; n < 3; n += 1) {
      const { request, session } = await beginWork(store);
      await session.handle.execute(rows.insert, [request.key]);
      expect(await session.commit(DONE, "everything")).toEqual({ kind: "committed" });
      proxy.cutAll();
      await sleep(50);
    }
    await store.close();
    await proxy.close();
  });

  it("a process that vanishes leaves no lock for longer than a minute", async () => {
    const { store } = await prepared();
    const { session } = await beginWork(store, 1_000);
    const [[limits]] = await session.handle.query<Record<string, number>[]>(
      "SELECT @@wait_timeout AS idle, @@innodb_lock_wait_timeout AS locks, @@autocommit AS auto",
    );
    expect(limits).toEqual({ idle: 60, locks: 1, auto: 0 });
    await session.rollback();
  });

  it("the application's own pool stays as it was", async () => {
    const pool = openPool(url);
    const [rows] = await pool.query<mysql.RowDataPacket[]>("SELECT @@autocommit AS auto");
    expect(rows[0]?.auto).toBe(1);
  });
});
