/**
 * What an application has set up for its own queries changes nothing about records. Each of these has broken a library.
 */
import callbacks from "mysql2";
import mysql, { type PoolOptions } from "mysql2/promise";
import { fromMysql2, type MysqlDriver, mysqlStore } from "oncekey/stores/mysql";
import { describe, expect, it, onTestFinished } from "vitest";
import { bytesOf, claimRequest, repeatOf } from "../../../src/testing/requests.js";
import { mariadbUrl } from "../support/servers.js";
import { completionOf, freshPrefix, openPool, openRows, transactionOf } from "./fixture.js";

const url = await mariadbUrl();

/** Pool options by what is special about them. */
const SETTINGS: Readonly<Record<string, PoolOptions>> = {
  nothing: {},
  "rows that count only when changed": { flags: ["-FOUND_ROWS"] },
  "dates as text": { dateStrings: true },
  "another time zone": { timezone: "+09:00" },
  "big numbers as text": { supportBigNumbers: true, bigNumberStrings: true },
  "rows as lists": { rowsAsArray: true },
  "named placeholders": { namedPlaceholders: true },
  "several statements": { multipleStatements: true },
  "no casts": { typeCast: false },
  "casts of its own": { typeCast: (field: { string(): string | null }) => field.string() },
  "names of tables before columns": { nestTables: "_" } as PoolOptions,
  "another character set": { charset: "latin1_swedish_ci" },
};

function opened(driver: MysqlDriver) {
  const store = mysqlStore(driver, { tablePrefix: freshPrefix(), sweepIntervalMs: 0 });
  onTestFinished(() => store.close());
  return store;
}

describe.each(Object.entries(SETTINGS))("with %s in the application's pool", (_, options) => {
  it("records live their lives", async () => {
    const store = opened(fromMysql2(openPool(url, options)));
    await store.migrate();
    const request = claimRequest({ operation: "POST /zahlungen/ä 'ü' \\ ?", label: "ключ" });
    expect(await store.claim(request)).toMatchObject({ kind: "claimed", attempt: 1 });
    expect(await store.claim(repeatOf(request))).toMatchObject({ kind: "in-flight", holder: request.token });
    expect(await store.extend({ ...request, leaseMs: 60_000 })).toEqual({ kind: "extended" });
    const body = Uint8Array.from({ length: 256 }, (__, index) => index);
    const outcome = { head: '{"a":"\'ä?\\\\"}', body };
    expect(await store.complete({ ...completionOf(request), outcome })).toMatchObject({ how: "stored" });
    const replay = await store.claim(repeatOf(request));
    expect(replay).toMatchObject({ kind: "completed", outcome: { head: outcome.head } });
    expect(replay.kind === "completed" && [...(replay.outcome.body ?? [])]).toEqual([...body]);
    const info = await store.find(request.key);
    expect(info).toMatchObject({ operation: request.operation, label: "ключ", resultBytes: 256 });
    const page = await store.list({ operation: request.operation, limit: 10 });
    expect(page.records.map(({ key }) => key)).toEqual([request.key]);
  });

  it("exactly-once work has them, and its record has not", async () => {
    const pool = openPool(url, options);
    const store = opened(fromMysql2(pool));
    await store.migrate();
    const rows = await openRows(openPool(url));
    const request = claimRequest({ guarantee: "exactly-once" });
    await store.claim(request);
    const session = store.begin?.(transactionOf(request));
    const [own] = (await session?.handle.query("SELECT 1 AS one")) ?? [];
    const [same] = await pool.query("SELECT 1 AS one");
    expect(own).toEqual(same);
    await session?.handle.query(`INSERT INTO ${rows.table} (id, n) VALUES ('${request.key}', 0)`);
    expect(await session?.commit({ head: "h", body: bytesOf("b") }, "everything")).toEqual({
      kind: "committed",
    });
    expect(await rows.count(request.key)).toBe(1);
  });

  it("a transaction of its own is joined and guarded", async () => {
    const pool = openPool(url, options);
    const store = opened(fromMysql2(pool));
    await store.migrate();
    const connection = await pool.getConnection();
    const [request, other] = [claimRequest({ operation: "ä?" }), claimRequest()];
    await store.claim(other);
    await store.complete({ ...completionOf(other), outcome: { head: "h?ä", body: bytesOf("\0ÿ'") } });
    await connection.beginTransaction();
    const joined = store.join?.(connection);
    await joined?.savepoint();
    const answers = await joined?.claim([request, repeatOf(other)], 0);
    expect(answers).toMatchObject([
      { kind: "claimed" },
      { kind: "completed", outcome: { head: "h?ä", body: Buffer.from(bytesOf("\0ÿ'")) } },
    ]);
    await joined?.complete([completionOf(request, "joined")]);
    await connection.commit();
    expect(await store.claim(repeatOf(request))).toMatchObject({
      kind: "completed",
      outcome: { head: "head of joined" },
    });
    const held = claimRequest();
    await store.claim(held);
    await connection.beginTransaction();
    expect(await store.pin?.(connection, { ...held, waitMs: 100 })).toEqual({ kind: "pinned" });
    await connection.rollback();
    connection.release();
  });
});

describe("a driver", () => {
  it("comes from a pool with callbacks, and from createPool with an address or options", async () => {
    const pool = callbacks.createPool(url);
    onTestFinished(() => pool.end());
    const { hostname, port, username, pathname } = new URL(url);
    const options = { host: hostname, port: Number(port), user: username, database: pathname.slice(1) };
    const drivers = [
      fromMysql2(pool),
      fromMysql2(callbacks.createPool, url),
      fromMysql2(mysql.createPool, options),
    ];
    for (const driver of drivers) {
      const store = opened(driver);
      await store.migrate();
      expect(await store.claim(claimRequest())).toMatchObject({ kind: "claimed" });
    }
  });

  it("uses none of the application's own connections", async () => {
    const pool = openPool(url, { connectionLimit: 1 });
    const busy = await pool.getConnection();
    const store = opened(fromMysql2(pool));
    await store.migrate();
    expect(await store.claim(claimRequest())).toMatchObject({ kind: "claimed" });
    busy.release();
  });

  it("is told from what is none when it is made", async () => {
    const connection = await mysql.createConnection(url);
    onTestFinished(() => connection.end());
    expect(() => fromMysql2(connection as never)).toThrow(/a pool of mysql2/);
    expect(() => fromMysql2(mysql.createPool as never)).toThrow(/followed by a configuration/);
    expect(() => mysqlStore(openPool(url) as never)).toThrow(/fromMysql2\(pool\)/);
    expect(() => mysqlStore(fromMysql2(openPool(url)), { connections: 0, timeoutMs: -1 })).toThrow(
      /connections[\s\S]*timeoutMs/,
    );
  });
});
