/**
 * @module
 * Opening the two connections and making the file ready.
 *
 * Invariants: the connections are the store's own and lead to the same file; both are in WAL mode, wait for
 * nobody inside SQLite, and keep what they acknowledge as long as `synchronous` says.
 */
import { configurationError } from "../../core/errors.js";
import type { SqliteConnection, SqliteDriver } from "./driver.js";
import { rollBack } from "./driver.js";
import { isMigrated, migrate, type Tables } from "./schema.js";

export interface Connections {
  readonly records: SqliteConnection;
  /** For exactly-once work. */
  readonly work: SqliteConnection;
}

/**
 * Opens both connections at once, so that a wrong driver is noticed when the program starts.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with the reason.
 */
export function openConnections(driver: SqliteDriver): Connections {
  const records = driver.open();
  let work: SqliteConnection | undefined;
  try {
    work = driver.open();
    checkPair(records, work);
    return { records, work };
  } catch (error) {
    if (work !== undefined && work.client !== records.client) work.close();
    // A connection that was passed in twice is the application's, not ours to close.
    if (work === undefined || work.client !== records.client) records.close();
    throw error;
  }
}

function checkPair(records: SqliteConnection, work: SqliteConnection): void {
  if (records.client === work.client) {
    throw configurationError("The SQLite driver", [
      "the function returned the same connection twice: the store needs new ones of its own, " +
        'so write () => new Database("orders.db") and not () => db',
    ]);
  }
  const [first, second] = [fileOf(records), fileOf(work)];
  if (first === "" || second === "") {
    throw configurationError("The SQLite driver", [
      "the database has no file: one in memory is private to its connection and the store opens two. " +
        "Use memoryStore(), or a file in a temporary directory",
    ]);
  }
  if (first !== second) {
    throw configurationError("The SQLite driver", [
      "the function opened two different files: records and work have to be in one",
    ]);
  }
}

function fileOf(connection: SqliteConnection): string {
  const main = connection
    .prepare("PRAGMA database_list")
    .all([])
    .find((row) => row.name === "main");
  return typeof main?.file === "string" ? main.file : "";
}

/**
 * Sets both connections up and migrates the file. May be repeated.
 *
 * @throws what SQLite throws while another connection is in the way.
 */
export function prepareFile(
  { records, work }: Connections,
  tables: Tables,
  synchronous: "full" | "normal",
  nowMs: () => number,
): void {
  for (const connection of [records, work]) {
    // First of all: everything after it may find the file busy, and must not sleep inside SQLite.
    connection.exec("PRAGMA busy_timeout = 0");
    useWal(connection);
    connection.exec(`PRAGMA synchronous = ${synchronous}`);
  }
  if (isMigrated(records, tables)) return;
  records.exec("BEGIN IMMEDIATE");
  try {
    migrate(records, tables, nowMs());
    records.exec("COMMIT");
  } catch (error) {
    rollBack(records);
    throw error;
  }
}

function useWal(connection: SqliteConnection): void {
  const mode = connection.prepare("PRAGMA journal_mode = wal").get([])?.journal_mode;
  if (mode === "wal") return;
  throw configurationError("The database", [
    `it cannot use a write-ahead log (journal_mode stays ${String(mode)}): is it on a network file system, or read-only?`,
  ]);
}
