/**
 * @module
 * `oncekey/stores/mysql`: records in a table of MySQL or MariaDB.
 */
export { fromMysql2, type Mysql2CreatePool, type Mysql2Pool } from "./clients.js";
export type { MysqlDriver } from "./driver.js";
export type { MysqlStoreOptions } from "./options.js";
export { type MysqlStore, mysqlStore } from "./store.js";
