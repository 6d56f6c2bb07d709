/** Servers and accounts are set up in many ways; the store's sessions are its own. */
import { setTimeout as sleep } from "node:timers/promises";
import mysql, { type RowDataPacket } from "mysql2/promise";
import { fromMysql2, mysqlStore } from "oncekey/stores/mysql";
import { describe, expect, it, onTestFinished } from "vitest";
import type { MysqlDone, MysqlDriver, MysqlQuery } from "../../../src/stores/mysql/driver.js";
import { bytesOf, claimRequest, repeatOf } from "../../../src/testing/requests.js";
import { faultProxy } from "../support/fault-proxy.js";
import { mariadbUrl, ownServer } from "../support/servers.js";
import { beginWork, completionOf, openPool, openRows, openStore, resultOf } from "./fixture.js";

const MIB = 1024 * 1024;
const url = await mariadbUrl();
const ODD = {
  "sql-mode": "NO_BACKSLASH_ESCAPES,ANSI_QUOTES",
  autocommit: "OFF",
  "transaction-isolation": "SERIALIZABLE",
  "default-time-zone": "-11:30",
  "character-set-server": "latin1",
  "collation-server": "latin1_swedish_ci",
  "max-allowed-packet": String(MIB),
  "innodb-flush-log-at-trx-commit": "2",
};

describe("on a server with nothing as the store would have it", () => {
  it("records are what they are everywhere, and transactions commit", async () => {
    const server = await ownServer("mariadb", { settings: ODD });
    const { store } = await openStore(server.url);
    const request = claimRequest({ operation: "POST /ä'\\ü", leaseMs: 60_000 });
    await store.claim(request);
    const info = await store.find(request.key);
    expect(info?.operation).toBe("POST /ä'\\ü");
    expect(info?.leaseRemainingMs).toBeGreaterThan(50_000);
    expect(info?.ageMs).toBeLessThan(10_000);
    const outcome = { head: "'\\ü\"", body: Uint8Array.from([0, 39, 92, 255]) };
    await store.complete({ ...completionOf(request), outcome });
    const replay = await store.claim(repeatOf(request));
    expect(replay).toMatchObject({ kind: "completed", outcome: { head: outcome.head } });
    expect(replay.kind === "completed" && [...(replay.outcome.body ?? [])]).toEqual([0, 39, 92, 255]);

    const rows = await openRows(openPool(server.url));
    const work = await beginWork(store);
    await work.session.handle.query(rows.insert, [work.request.key]);
    expect(await work.session.commit(resultOf("x"), "everything")).toEqual({ kind: "committed" });
    await store.close();
  });

  it("what a power cut can take is said", async () => {
    const server = await ownServer("mariadb", { settings: ODD });
    const { store } = await openStore(server.url);
    await store.claim(claimRequest());
    const heard: string[] = [];
    store.notices?.(({ text }) => heard.push(text)).close();
    expect(heard).toEqual([expect.stringContaining("innodb_flush_log_at_trx_commit")]);
    await store.close();
  });

  it("a result that fits in no packet completes the key without its body; the next ones are kept", async () => {
    const server = await ownServer("mariadb", { settings: ODD });
    const { store } = await openStore(server.url);
    const [large, small] = [claimRequest(), claimRequest()];
    await Promise.all([store.claim(large), store.claim(small)]);
    const outcome = { head: "201", body: new Uint8Array(MIB) };
    const completed = await Promise.all([
      store.complete({ ...completionOf(large), outcome }),
      store.complete(completionOf(small)),
    ]);
    expect(completed).toMatchObject([{ how: "stored" }, { how: "stored" }]);
    expect(await store.claim(repeatOf(large))).toMatchObject({
      kind: "completed",
      outcome: { head: "201", body: undefined },
    });
    expect(await store.find(small.key)).toMatchObject({ resultBytes: 4 });
    const other = claimRequest();
    await store.claim(other);
    const head = "x".repeat(MIB);
    const tooLarge = store.complete({ ...completionOf(other), outcome: { head, body: undefined } });
    await expect(tooLarge).rejects.toMatchObject({ code: "RESULT_TOO_LARGE" });
    await store.close();
  });
});

describe("a server that is too old", () => {
  it("is refused by each call, on connections that are ended again", async () => {
    const pool = openPool(url);
    const open = async (): Promise<number> => {
      const [[row]] = await pool.query<RowDataPacket[]>(
        "SELECT COUNT(*) AS n FROM information_schema.PROCESSLIST WHERE DB = DATABASE()",
      );
      return Number(row?.n);
    };
    const before = await open();
    const store = mysqlStore(calledOld(fromMysql2(mysql.createPool, url)), { sweepIntervalMs: 0 });
    onTestFinished(() => store.close());
    for (let n = 0; n < 5; n += 1) {
      await expect(store.claim(claimRequest())).rejects.toMatchObject({ code: "CONFIGURATION_INVALID" });
    }
    for (let tries = 0; tries < 50 && (await open()) > before; tries += 1) await sleep(20);
    expect(await open()).toBeLessThanOrEqual(before);
  });
});

/** The same, save that the server calls itself 5.7. */
const calledOld = (driver: MysqlDriver) => saying(driver, (sql) => sql.replace("VERSION()", "'5.7.44'"));

/** The same, save that other statements are sent. */
function saying(driver: MysqlDriver, changed: (sql: string) => string): MysqlDriver {
  const records = driver.records();
  async function open() {
    const connection = await records.open();
    const query = connection.query.bind(connection) as (options: MysqlQuery, done: MysqlDone) => unknown;
    const other = (options: MysqlQuery, done: MysqlDone) =>
      query({ ...options, sql: changed(options.sql) }, done);
    return Object.assign(connection, { query: other });
  }
  return { ...driver, records: () => ({ ...records, open }) };
}

describe("a server that has stopped answering", () => {
  it("is left in bounded time, whatever it still owes", async () => {
    const proxy = await faultProxy(url);
    onTestFinished(proxy.close);
    const { another } = await openStore(url);
    const store = another({ timeoutMs: 300 }, `${proxy.url}?connectTimeout=500`);
    const rows = await openRows(openPool(url));
    const work = await beginWork(store);
    await work.session.handle.query(rows.insert, [work.request.key]);
    proxy.stall();
    const owed = Promise.allSettled([store.find(work.request.key), work.session.handle.query("SELECT 1")]);
    await store.close();
    expect(await owed).toMatchObject([
      { status: "rejected", reason: { code: "STORE_UNAVAILABLE" } },
      { status: "rejected", reason: { code: "TRANSACTION_CLOSED" } },
    ]);
  });
});

describe("results", () => {
  it.each([0, 1, MIB, 3 * MIB])("of %i bytes come back as they were", async (size) => {
    const { store } = await openStore(url);
    const request = claimRequest();
    await store.claim(request);
    const body = Uint8Array.from({ length: size }, (_, index) => (index * 31) % 256);
    await store.complete({ ...completionOf(request), outcome: { head: "", body } });
    const replay = await store.claim(repeatOf(request));
    expect(replay.kind === "completed" && Buffer.from(replay.outcome.body ?? []).equals(body)).toBe(true);
    expect(replay.kind === "completed" && replay.outcome.body).toBeInstanceOf(Uint8Array);
  });

  it("keys that a collation takes for one are two", async () => {
    const { store } = await openStore(url);
    const [lower, upper] = [claimRequest(), claimRequest()];
    const keys = [`${lower.key.slice(1)}a`, `${lower.key.slice(1)}A`] as (typeof lower.key)[];
    const answers = await Promise.all([
      store.claim({ ...lower, key: keys[0] ?? lower.key }),
      store.claim({ ...upper, key: keys[1] ?? upper.key }),
    ]);
    expect(answers.map(({ kind }) => kind)).toEqual(["claimed", "claimed"]);
  });

  it("what does not fit its column fails alone, and is not cut off", async () => {
    const { store } = await openStore(url);
    const good = claimRequest();
    const bad = claimRequest({ operation: "x".repeat(70_000) });
    const spaced = claimRequest({ token: "ends with a space " as typeof good.token });
    const answers = await Promise.allSettled([bad, good, spaced].map((request) => store.claim(request)));
    expect(answers.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "rejected"]);
    expect(await store.find(bad.key)).toBeUndefined();
  });

  it("a server that is not there is a coded error, soon, and one that came back is used", async () => {
    const server = await ownServer("mariadb");
    const { store } = await openStore(server.url, { timeoutMs: 500 });
    await server.stop("SIGKILL");
    await expect(store.claim(claimRequest())).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await server.start();
    const request = claimRequest();
    expect(await store.claim(request)).toMatchObject({ kind: "claimed" });
    expect(
      await store.complete({ ...completionOf(request), outcome: { head: "", body: bytesOf("") } }),
    ).toMatchObject({
      kind: "completed",
    });
    await store.close();
  });
});

describe("a server that stands still", () => {
  it("does not make a claim that reached it before and was refused meanwhile", async () => {
    const server = await ownServer("mariadb");
    const { store, another } = await openStore(server.url, { timeoutMs: 400, connections: 1 });
    const outside = another({ timeoutMs: 5_000 });
    await Promise.all([store.claim(claimRequest()), outside.claim(claimRequest())]);
    const request = claimRequest();
    await server.pause();
    await expect(store.claim(request)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await server.resume();
    await sleep(500);
    expect(await outside.find(request.key)).toBeUndefined();
    await Promise.all([store.close(), outside.close()]);
  });

  it("and makes none that it had begun with in time and goes on with too late", async () => {
    const { store: outside, records } = await openStore(url);
    const slow = saying(fromMysql2(mysql.createPool, url), (sql) =>
      sql.replace("AS in_time;", "AS in_time;DO SLEEP(0.3);DO SLEEP(0.3);"),
    );
    const tablePrefix = records.replace(/records$/, "");
    const store = mysqlStore(slow, { sweepIntervalMs: 0, timeoutMs: 400, tablePrefix });
    onTestFinished(() => store.close());
    await store.claim(claimRequest());
    const request = claimRequest();
    await expect(store.claim(request)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await sleep(1_000);
    expect(await outside.find(request.key)).toBeUndefined();
  });
});
