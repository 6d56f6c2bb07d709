/**
 * @module
 * The few things that the store needs of a client of MySQL, and what the server's errors mean to it.
 *
 * Invariants: the connections are the store's own; a statement is sent once, when it is asked for, and a client that
 * cannot reach its server says so instead of keeping the statement for later. Knowing the client is left to `clients.ts`,
 * keeping connections to `connections.ts`.
 */
import { isOncekeyError, OncekeyError } from "../../core/errors.js";

/** One statement, or several in one round trip. What differs between pools is said with each. */
export interface MysqlQuery {
  readonly sql: string;
  readonly rowsAsArray: false;
  readonly nestTables: false;
  readonly namedPlaceholders: false;
  readonly typeCast: true;
}

export type MysqlDone = (error: unknown, result: unknown, fields: unknown) => void;

/** A connection with callbacks, as mysql2 has them inside its pools. */
export interface MysqlConnection {
  readonly threadId: number | null;
  query(options: MysqlQuery, done: MysqlDone): unknown;
  query(sql: unknown, values: unknown, done: MysqlDone): unknown;
  execute(sql: unknown, values: unknown, done: MysqlDone): unknown;
  on(event: "end" | "error", listener: () => void): unknown;
  /** Drops the socket. */
  destroy(): void;
}

/** Opens connections, each to be kept or destroyed by whoever asked for it. */
export interface MysqlSource {
  open(): Promise<MysqlConnection>;
  /** Says goodbye on all of them. */
  close(): Promise<void>;
}

export interface MysqlDriver {
  readonly name: string;
  /** For records: they take several statements in one round trip. */
  records(): MysqlSource;
  /** For exactly-once work: as the application has set its own connections up. */
  work(): MysqlSource;
}

/**
 * - `held`: another transaction has the row, or chose this one to die; the same statement may be sent again.
 * - `lost`: the connection is gone, and whether the statement ran is not known.
 * - `too-large`: the server takes no packets of that size, and has dropped the connection.
 * - `tables`: a table or a column is missing.
 * - `too-slow`: the server has ended the statement at its time limit, or somebody has by hand; nothing of it was done.
 * - `read-only`: a replica, or a primary that is not one any more.
 * - `statement`: the server refused this statement and nothing of it was done.
 */
export type MysqlFault = "held" | "lost" | "too-large" | "tables" | "too-slow" | "read-only" | "statement";

/** By the server's numbers, which no translation and no version changes. */
const FAULTS: ReadonlyMap<number, MysqlFault> = new Map([
  [1205, "held"], // lock wait timeout; on MariaDB also what NOWAIT meets
  [1213, "held"], // deadlock, or a certification that failed in a cluster
  [3572, "held"], // what NOWAIT meets on MySQL
  [1020, "held"], // MariaDB: changed since it was read
  [1049, "tables"],
  [1054, "tables"],
  [1146, "tables"],
  [1153, "too-large"],
  [1290, "read-only"],
  [1792, "read-only"],
  [1836, "read-only"],
  [1053, "lost"], // the server shuts down
  [1077, "lost"],
  [1317, "too-slow"],
  [1927, "lost"], // MariaDB: the connection was killed
  [1969, "too-slow"], // MariaDB: max_statement_time
  [3024, "too-slow"], // MySQL: max_execution_time
  [4031, "lost"], // MySQL: nobody has used the connection for too long
]);

/** What an error of the client means; `undefined` for errors that are not the client's. */
export function faultOf(error: unknown): MysqlFault | undefined {
  if (typeof error !== "object" || error === null || isOncekeyError(error)) return undefined;
  const { errno, code, fatal, sqlState } = error as {
    readonly errno?: unknown;
    readonly code?: unknown;
    readonly fatal?: unknown;
    readonly sqlState?: unknown;
  };
  const known = typeof errno === "number" ? FAULTS.get(errno) : undefined;
  if (known !== undefined) return known;
  if (fatal === true) return "lost";
  if (sqlState !== undefined) return "statement";
  return code === undefined ? undefined : "lost";
}

/** The number of a server's error. */
export function errnoOf(error: unknown): number | undefined {
  const { errno } = (error ?? {}) as { readonly errno?: unknown };
  return typeof errno === "number" ? errno : undefined;
}

/**
 * An error of the client as the coded error that the port promises; coded errors pass as they are.
 *
 * Whether anything was changed is not said: a connection may be lost after the server has done everything.
 */
export function unavailable(cause: unknown): OncekeyError {
  if (isOncekeyError(cause)) return cause;
  const why = cause instanceof Error ? cause.message : String(cause);
  const message = `The database cannot be used now: ${why}. The call may be repeated once the cause is gone.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause });
}

export function timedOut(waitMs: number): OncekeyError<"STORE_UNAVAILABLE"> {
  const message = `The database did not answer within ${waitMs} ms. The call may have landed; repeating it tells.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000 });
}
