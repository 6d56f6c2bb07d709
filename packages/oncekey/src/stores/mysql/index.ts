/**
 * @module
 * `oncekey/stores/mysql`: records in a table of MySQL or MariaDB.
 */
export type { MysqlCallerTransaction } from "./caller.js";
export { fromMysql2, type Mysql2CreatePool, type Mysql2Pool } from "./clients.js";
export type {
  MysqlConnection,
  MysqlDone,
  MysqlDriver,
  MysqlQuery,
  MysqlSource,
} from "./driver.js";
export type { MysqlStoreOptions } from "./options.js";
export { type MysqlMigrationsOptions, mysqlMigrations } from "./schema.js";
export { type MysqlStore, mysqlStore } from "./store.js";
export type { MysqlChanges, MysqlRow, MysqlStatement, MysqlTransaction } from "./transaction.js";
