/**
 * @module
 * What makes a driver of mysql2.
 *
 * The store never queries the application's pool: it opens connections of its own with that pool's configuration, so that
 * no claim lands inside somebody's transaction, and none waits in a queue behind the application's queries. Invariant:
 * nothing depends on how the application likes its results (affected rows, dates, big numbers, arrays, casts,
 * placeholders): what matters is set here, or said with each query.
 */
import { configurationError } from "../../core/errors.js";
import type { MysqlConnection, MysqlDriver, MysqlSource } from "./driver.js";

/** A pool of mysql2, of either kind: with callbacks or with promises. Only its configuration is used. */
export interface Mysql2Pool {
  readonly getConnection: (...args: never[]) => unknown;
}

/** `createPool` of `mysql2` or of `mysql2/promise`. */
export type Mysql2CreatePool = (options: never) => unknown;

/** What the store reads of a pool with callbacks. */
interface CorePool {
  readonly config: { readonly connectionConfig: object };
  readonly constructor: new (options: { readonly config: object }) => CorePool;
  getConnection(done: (error: unknown, connection: MysqlConnection) => void): void;
  end(done: (error: unknown) => void): void;
}

/** The bit of the protocol that allows several statements in one round trip. */
const MULTI_STATEMENTS = 0x1_0000;

/**
 * A driver of mysql2, from a pool that the application has anyway, or from `createPool` and what one gives it.
 *
 * @example fromMysql2(mysql.createPool("mysql://app@db/orders"))
 * @example fromMysql2(mysql.createPool, { host: "db", user: "app", database: "orders" })
 * @throws OncekeyError `CONFIGURATION_INVALID` if it is given anything else, such as a single connection.
 */
export function fromMysql2(pool: Mysql2Pool): MysqlDriver;
export function fromMysql2(createPool: Mysql2CreatePool, config: object | string): MysqlDriver;
export function fromMysql2(
  poolOrCreate: Mysql2Pool | Mysql2CreatePool,
  config?: object | string,
): MysqlDriver {
  const template = typeof poolOrCreate === "function" ? created(poolOrCreate, config) : coreOf(poolOrCreate);
  if (template === undefined) throw configurationError("fromMysql2", [WHAT_IT_TAKES]);
  return {
    name: "mysql2",
    records: () => sourceOf(template, true),
    work: () => sourceOf(template, false),
  };
}

const WHAT_IT_TAKES =
  "the first argument is a pool of mysql2 (not a connection), or its createPool followed by a configuration";

function created(createPool: Mysql2CreatePool, config: object | string | undefined): CorePool | undefined {
  if (config === undefined) return undefined;
  const pool: unknown = (createPool as (options: unknown) => unknown)(config);
  return coreOf(pool);
}

/** The pool with callbacks, which one with promises has inside. */
function coreOf(pool: unknown): CorePool | undefined {
  const { pool: inner } = (pool ?? {}) as { readonly pool?: unknown };
  const core = (inner ?? pool ?? {}) as Partial<CorePool>;
  const isCore =
    typeof core.getConnection === "function" &&
    typeof core.end === "function" &&
    typeof core.config?.connectionConfig === "object";
  return isCore ? (core as CorePool) : undefined;
}

const NO_LIMIT = 10_000;

/** A pool of the store's own, made as the application's was. How many connections there are is not left to it. */
function sourceOf(template: CorePool, forRecords: boolean): MysqlSource {
  const pool = new template.constructor({
    config: copied(template.config, {
      connectionConfig: connectionConfigOf(template.config.connectionConfig, forRecords),
      waitForConnections: false,
      connectionLimit: NO_LIMIT,
      // Below the limit it would start a timer that keeps the process running.
      maxIdle: NO_LIMIT,
      resetOnRelease: false,
    }),
  });
  return {
    open: () =>
      new Promise((resolve, reject) => {
        pool.getConnection((error, connection) => {
          if (error) reject(error);
          else resolve(connection);
        });
      }),
    close: () => new Promise((resolve) => pool.end(() => resolve())),
  };
}

function connectionConfigOf(config: object, forRecords: boolean): object {
  if (!forRecords) return copied(config, {});
  const { clientFlags = 0 } = config as { readonly clientFlags?: number };
  return copied(config, {
    clientFlags: clientFlags | MULTI_STATEMENTS,
    multipleStatements: true,
    supportBigNumbers: false,
    bigNumberStrings: false,
    queryFormat: undefined,
    trace: false,
  });
}

/** With its prototype, as mysql2 itself copies a configuration for each connection. */
function copied(config: object, changes: Readonly<Record<string, unknown>>): object {
  const own: object = Object.create(Object.getPrototypeOf(config), Object.getOwnPropertyDescriptors(config));
  return Object.assign(own, changes);
}
