/**
 * @module
 * `oncekey/stores/postgres`: records in a Postgres database.
 */
export type { CallerTransaction } from "./caller.js";
export type {
  InTransaction,
  ListenHandlers,
  Listening,
  PoolOptions,
  PostgresConnection,
  PostgresDriver,
  PostgresParam,
  PostgresPool,
  PostgresRow,
  PostgresStatement,
  SessionMemory,
} from "./driver.js";
export type { PostgresListener, PostgresStoreOptions } from "./options.js";
export { fromPg, type PgPool, type PgPoolSettings, type PgTransaction } from "./pg.js";
export {
  fromPglite,
  type PgliteDatabase,
  type PgliteTransaction,
} from "./pglite.js";
export {
  fromPostgresJs,
  type PostgresJsSettings,
  type PostgresJsSql,
  type PostgresJsTransaction,
} from "./postgres-js.js";
export { type PostgresMigrationsOptions, postgresMigrations } from "./schema.js";
export { type PostgresStore, postgresStore } from "./store.js";
