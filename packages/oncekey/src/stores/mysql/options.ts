/**
 * @module
 * The settings of `mysqlStore`, with their reasons and their bounds.
 */
import { configurationError } from "../../core/errors.js";
import { countProblems, durationProblems, unknownOptions } from "../../core/policy-checks.js";
import type { MysqlDriver } from "./driver.js";
import { DEFAULT_PREFIX, problemsOfPrefix } from "./schema.js";

/** A property that is `undefined` is not set. */
export interface MysqlStoreOptions {
  /**
   * Begins the names of the tables (`oncekey_records`, `oncekey_migrations`). 1 to 40 letters, digits and
   * underscores. Set it where two programs that shall not meet share a database.
   *
   * @defaultValue "oncekey_"
   */
  readonly tablePrefix?: string | undefined;
  /**
   * How many connections records are read and written through, 1 to 100. A batch takes one for the time of its round
   * trip, so a few carry thousands of calls per second.
   *
   * @defaultValue 6
   */
  readonly connections?: number | undefined;
  /**
   * How many exactly-once transactions may be open at once, 1 to 1,000; each has a connection of its own. More of them
   * wait for their turn.
   *
   * @defaultValue 10
   */
  readonly transactions?: number | undefined;
  /**
   * How long a call waits for the database, in milliseconds, 1 to 60,000; the server itself gives up as early where it
   * can. Keep it below `storeTimeoutMs` (2,000 unless set), so that the caller hears of it from here.
   *
   * @defaultValue 1500
   */
  readonly timeoutMs?: number | undefined;
  /**
   * What exactly-once work sees of others while it runs. `"repeatable-read"` is the server's own default; it takes locks
   * between rows, and so dies of deadlocks more often.
   *
   * @defaultValue "read-committed"
   */
  readonly isolation?: "read-committed" | "repeatable-read" | "serializable" | undefined;
  /**
   * Whether a replica can be promoted that has not got everything that was acknowledged (asynchronous replication). A claim or
   * a completion that is forgotten is work done twice, so at-most-once is then refused unless it accepts lost writes.
   *
   * @defaultValue false
   */
  readonly asynchronousReplica?: boolean | undefined;
  /**
   * How often expired records are removed, in milliseconds; 0 leaves it to `purge`. The timer does not keep the process
   * running.
   *
   * @defaultValue 60000
   */
  readonly sweepIntervalMs?: number | undefined;
}

export interface Settings {
  readonly tablePrefix: string;
  readonly connections: number;
  readonly transactions: number;
  readonly timeoutMs: number;
  readonly isolation: "read-committed" | "repeatable-read" | "serializable";
  readonly asynchronousReplica: boolean;
  readonly sweepIntervalMs: number;
}

const MAX_TIMEOUT_MS = 60_000;
const ISOLATIONS: readonly string[] = ["read-committed", "repeatable-read", "serializable"];

/** @throws OncekeyError `CONFIGURATION_INVALID` that lists everything that is wrong. */
export function settingsOf(driver: unknown, options: MysqlStoreOptions): Settings {
  const settings: Settings = {
    tablePrefix: options.tablePrefix ?? DEFAULT_PREFIX,
    connections: options.connections ?? 6,
    transactions: options.transactions ?? 10,
    timeoutMs: options.timeoutMs ?? 1_500,
    isolation: options.isolation ?? "read-committed",
    asynchronousReplica: options.asynchronousReplica ?? false,
    sweepIntervalMs: options.sweepIntervalMs ?? 60_000,
  };
  const problems = [
    ...problemsOfDriver(driver),
    ...unknownOptions(options, NAMES),
    ...problemsOfPrefix(settings.tablePrefix),
    ...countProblems("connections", settings.connections, 1, 100),
    ...countProblems("transactions", settings.transactions, 1, 1_000),
    ...durationProblems("timeoutMs", settings.timeoutMs, 1, MAX_TIMEOUT_MS),
    ...durationProblems("sweepIntervalMs", settings.sweepIntervalMs, 0),
  ];
  if (!ISOLATIONS.includes(settings.isolation)) {
    problems.push('isolation must be one of "read-committed", "repeatable-read", "serializable"');
  }
  if (typeof settings.asynchronousReplica !== "boolean")
    problems.push("asynchronousReplica must be true or false");
  if (problems.length > 0) throw configurationError("mysqlStore", problems);
  return settings;
}

function problemsOfDriver(driver: unknown): readonly string[] {
  const { name, records, work } = (driver ?? {}) as Partial<MysqlDriver>;
  if (typeof name === "string" && typeof records === "function" && typeof work === "function") return [];
  return ["the first argument is a driver, such as fromMysql2(pool), not a pool, a connection or an address"];
}

const NAMES: ReadonlySet<string> = new Set([
  "tablePrefix",
  "connections",
  "transactions",
  "timeoutMs",
  "isolation",
  "asynchronousReplica",
  "sweepIntervalMs",
] satisfies (keyof MysqlStoreOptions)[]);
