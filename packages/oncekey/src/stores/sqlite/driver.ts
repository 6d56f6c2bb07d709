/**
 * @module
 * The few methods that the store needs of a SQLite connection, whichever client it belongs to.
 *
 * Invariant: rows come as plain objects with bytes as `Uint8Array`, parameters are one list, and every call is
 * synchronous and never waits for another connection. Knowing the clients is left to `clients.ts`.
 */

/** What SQLite can hold. It has no booleans and no dates: pass `0` or `1`, and text or a number. */
export type SqliteValue = string | number | bigint | Uint8Array | null;

export type SqliteRow = Readonly<Record<string, unknown>>;

export interface SqliteChanges {
  readonly changes: number;
  readonly lastInsertRowid: number | bigint;
}

export interface SqliteStatement {
  run(params: readonly SqliteValue[]): SqliteChanges;
  get(params: readonly SqliteValue[]): SqliteRow | undefined;
  all(params: readonly SqliteValue[]): readonly SqliteRow[];
}

export interface SqliteConnection {
  prepare(sql: string): SqliteStatement;
  /** Runs any number of statements without parameters. */
  exec(sql: string): void;
  inTransaction(): boolean;
  close(): void;
  /** The client's own object: two connections with the same one are the same connection. */
  readonly client: object;
}

/** Opens connections to one database file. Made by `fromLibsql`, `fromBetterSqlite3` or `fromNodeSqlite`. */
export interface SqliteDriver {
  readonly name: string;
  open(): SqliteConnection;
}

/**
 * What an error of SQLite means here.
 *
 * - `busy`: another connection writes; the same call may succeed in a moment.
 * - `entry`: this statement's own data is at fault; others are not concerned.
 * - `file`: the file or its disk is at fault (full, read-only, damaged, gone).
 * - `other`: not an error of SQLite, or none that says more.
 */
export type SqliteFault = "busy" | "entry" | "file" | "other";

/** Primary result codes, https://www.sqlite.org/rescode.html */
const FAULT_OF_CODE: Readonly<Record<number, SqliteFault>> = {
  5: "busy",
  6: "busy",
  8: "file",
  10: "file",
  11: "file",
  13: "file",
  14: "file",
  18: "entry",
  19: "entry",
  20: "entry",
  25: "entry",
  26: "file",
};

const FAULT_OF_NAME: readonly (readonly [prefix: string, fault: SqliteFault])[] = [
  ["SQLITE_BUSY", "busy"],
  ["SQLITE_LOCKED", "busy"],
  ["SQLITE_TOOBIG", "entry"],
  ["SQLITE_CONSTRAINT", "entry"],
  ["SQLITE_MISMATCH", "entry"],
  ["SQLITE_RANGE", "entry"],
  ["SQLITE_READONLY", "file"],
  ["SQLITE_IOERR", "file"],
  ["SQLITE_CORRUPT", "file"],
  ["SQLITE_FULL", "file"],
  ["SQLITE_CANTOPEN", "file"],
  ["SQLITE_NOTADB", "file"],
];

/** libsql and better-sqlite3 name the result code in `code`, `node:sqlite` numbers it in `errcode`. */
export function faultOf(error: unknown): SqliteFault {
  if (typeof error !== "object" || error === null) return "other";
  const { code, errcode } = error as { readonly code?: unknown; readonly errcode?: unknown };
  if (typeof errcode === "number") return FAULT_OF_CODE[errcode & 0xff] ?? "other";
  if (typeof code !== "string") return "other";
  return FAULT_OF_NAME.find(([prefix]) => code.startsWith(prefix))?.[1] ?? "other";
}

/** Ends a transaction without a trace; SQLite may have ended it by itself already. */
export function rollBack(connection: SqliteConnection): void {
  if (connection.inTransaction()) connection.exec("ROLLBACK");
}
