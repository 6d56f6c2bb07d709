import Database from "libsql";
import {
  type BetterSqlite3Database,
  fromBetterSqlite3,
  fromLibsql,
  fromNodeSqlite,
  type NodeSqliteDatabase,
  type SqliteConnection,
  type SqliteDriver,
} from "oncekey/stores/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { loadBetterSqlite3 } from "../../../../scripts/drivers.mjs";
import { faultOf } from "../../src/stores/sqlite/driver.js";
import { temporaryFile } from "./sqlite-fixture.js";

const BetterSqlite3 = (await loadBetterSqlite3()) as new (path: string) => BetterSqlite3Database;

const drivers: [name: string, driverOf: (path: string) => SqliteDriver][] = [
  ["libsql", (path) => fromLibsql(() => new Database(path))],
  ["better-sqlite3", (path) => fromBetterSqlite3(() => new BetterSqlite3(path))],
];

/** Where Node has it without a flag, the same is asked of `node:sqlite`; the contract's binding says from when on. */
const builtin = process.getBuiltinModule("node:sqlite" as "node:fs") as unknown as
  | { readonly DatabaseSync: new (path: string) => NodeSqliteDatabase }
  | undefined;
if (builtin !== undefined) {
  drivers.push(["node:sqlite", (path) => fromNodeSqlite(() => new builtin.DatabaseSync(path))]);
  // Before Node 22.16 it does not say whether it is in a transaction.
  drivers.push([
    "an older node:sqlite",
    (path) =>
      fromNodeSqlite(() => {
        const database = new builtin.DatabaseSync(path);
        const { prepare, exec, close } = database;
        return { prepare: prepare.bind(database), exec: exec.bind(database), close: close.bind(database) };
      }),
  ]);
}

describe.each(drivers)("%s", (_, driverOf) => {
  function open(path: string): SqliteConnection {
    const connection = driverOf(path).open();
    connection.exec("PRAGMA busy_timeout = 0");
    onTestFinished(() => {
      if (connection.inTransaction()) connection.exec("ROLLBACK");
    });
    return connection;
  }

  function faultIn(perform: () => unknown): string {
    try {
      perform();
    } catch (error) {
      return faultOf(error);
    }
    return "none";
  }

  it("gives rows as plain data: bytes, integers, text, null, and nothing of its own", () => {
    const connection = open(temporaryFile());
    connection.exec("CREATE TABLE t (a, b, c, d, e)");
    const values = [Uint8Array.of(1, 2, 3).subarray(1), 2 ** 45, "text", null, 1.5];
    const insert = connection.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?)");
    expect(insert.run(values)).toMatchObject({ changes: 1 });
    const row = { a: Uint8Array.of(2, 3), b: 2 ** 45, c: "text", d: null, e: 1.5 };
    const select = connection.prepare("SELECT * FROM t WHERE b > ?");
    for (const got of [select.get([0]), ...select.all([0])]) {
      expect({ ...got }).toStrictEqual(row);
      expect(Object.getPrototypeOf(got?.a)).toBe(Uint8Array.prototype);
    }
    expect(select.get([2 ** 50])).toBeUndefined();
    expect(select.all([2 ** 50])).toEqual([]);
  });

  it("answers for the parameters that it was given, whatever was asked before", () => {
    const connection = open(temporaryFile());
    connection.exec("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)");
    const above = connection.prepare("SELECT a FROM t WHERE a > ? ORDER BY a");
    expect(above.all([0]).map(({ a }) => a)).toEqual([1, 2, 3]);
    expect(above.get([2])).toMatchObject({ a: 3 });
    expect(above.all([1]).map(({ a }) => a)).toEqual([2, 3]);
    expect(above.get([3])).toBeUndefined();
    const json = connection.prepare("SELECT json(?) AS json");
    const insert = connection.prepare("INSERT INTO t VALUES (json(?))");
    for (const ask of [json.get, json.all, insert.run]) {
      expect(() => ask(["{broken"])).toThrow(/JSON/);
      expect(() => ask(["{broken"])).toThrow(/JSON/);
      expect(insert.run(["{}"])).toMatchObject({ changes: 1 });
      expect(json.get(['{"a":1}'])).toMatchObject({ json: '{"a":1}' });
      expect(json.all(['{"b":2}'])).toMatchObject([{ json: '{"b":2}' }]);
    }
  });

  it("takes a single parameter that is bytes", () => {
    const connection = open(temporaryFile());
    connection.exec("CREATE TABLE t (a BLOB)");
    connection.prepare("INSERT INTO t VALUES (?)").run([Uint8Array.of()]);
    connection.prepare("INSERT INTO t VALUES (?)").run([Uint8Array.of(7)]);
    expect(connection.prepare("SELECT a FROM t WHERE a = ?").all([Uint8Array.of(7)])).toHaveLength(1);
  });

  it("knows whether it is in a transaction, also after SQLite has ended it", () => {
    const connection = open(temporaryFile());
    connection.exec("CREATE TABLE t (a UNIQUE)");
    expect(connection.inTransaction()).toBe(false);
    connection.exec("BEGIN IMMEDIATE");
    expect(connection.inTransaction()).toBe(true);
    connection.exec("INSERT INTO t VALUES (1)");
    expect(faultIn(() => connection.exec("INSERT OR ROLLBACK INTO t VALUES (1)"))).toBe("entry");
    expect(connection.inTransaction()).toBe(false);
  });

  it("names its faults: busy, at fault itself, the file", () => {
    const path = temporaryFile();
    const [one, other] = [open(path), open(path)];
    one.exec("PRAGMA journal_mode = wal; CREATE TABLE t (a UNIQUE, b)");
    one.exec("BEGIN IMMEDIATE");
    expect(faultIn(() => other.exec("BEGIN IMMEDIATE"))).toBe("busy");
    expect(faultIn(() => other.prepare("INSERT INTO t VALUES (1, 1)").run([]))).toBe("busy");
    one.exec("ROLLBACK");
    one.exec("INSERT INTO t VALUES (1, 1)");
    expect(faultIn(() => one.prepare("INSERT INTO t VALUES (?, 1)").run([1]))).toBe("entry");
    other.exec("PRAGMA query_only = on");
    expect(faultIn(() => other.exec("INSERT INTO t VALUES (2, 2)"))).toBe("file");
    one.exec("PRAGMA max_page_count = 1");
    const large = new Uint8Array(100_000);
    expect(faultIn(() => one.prepare("INSERT INTO t VALUES (3, ?)").run([large]))).toBe("file");
    expect(faultIn(() => one.exec("SELEC 1"))).toBe("other");
    expect(faultIn(() => one.exec("SELECT 1"))).toBe("none");
  });

  it("is in no transaction once it is closed, and may be asked", () => {
    const connection = driverOf(temporaryFile()).open();
    connection.exec("BEGIN");
    connection.close();
    expect(connection.inTransaction()).toBe(false);
  });
});
