/**
 * @module
 * `oncekey/stores/sqlite`: the durable store that needs no server.
 */
export {
  type BetterSqlite3Database,
  type BetterSqlite3Statement,
  fromBetterSqlite3,
  fromLibsql,
  fromNodeSqlite,
  type NodeSqliteDatabase,
  type NodeSqliteStatement,
} from "./clients.js";
export type {
  SqliteChanges,
  SqliteConnection,
  SqliteDriver,
  SqliteRow,
  SqliteStatement,
  SqliteValue,
} from "./driver.js";
export type { SqliteStoreOptions } from "./options.js";
export { sqliteStore } from "./store.js";
export type { SqliteTransaction } from "./transaction.js";
