/**
 * @module
 * The settings of `postgresStore`, with their reasons and their bounds.
 */
import { configurationError } from "../../core/errors.js";
import { countProblems, durationProblems, unknownOptions } from "../../core/policy-checks.js";
import type { PostgresDriver } from "./driver.js";
import { DEFAULT_NAMES, problemsOfNames, type TableNames } from "./schema.js";

/** The part of a driver that listens. */
export type PostgresListener = Pick<PostgresDriver, "name" | "listen">;

/** A property that is `undefined` is not set. */
export interface PostgresStoreOptions {
  /**
   * The schema of the tables. It is always written out, so a session's `search_path` does not matter.
   *
   * @defaultValue "public"
   */
  readonly schema?: string | undefined;
  /**
   * Begins the names of the tables (`oncekey_records`, `oncekey_migrations`). 1 to 40 small letters, digits and underscores.
   *
   * @defaultValue "oncekey_"
   */
  readonly tablePrefix?: string | undefined;
  /**
   * How long a call waits for the server, in milliseconds, 50 to 60,000; the server gives up its statements after the same time.
   * Keep it below `storeTimeoutMs` (2,000 unless set), so that the caller hears of it from here.
   *
   * @defaultValue 1500
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Connections for records: claims, completions, renewals, reads. 1 to 100. Calls of concurrent requests share
   * statements, so few are enough.
   *
   * @defaultValue 6
   */
  readonly connections?: number | undefined;
  /**
   * Exactly-once transactions open at a time, each with a connection of its own; others stand in line. 1 to 1,000.
   *
   * @defaultValue 10
   */
  readonly transactions?: number | undefined;
  /**
   * Whether the address leads to a pooler in transaction mode (PgBouncer, Supavisor, RDS Proxy …), where sessions are shared: no
   * statement is kept prepared, no setting is made for a session, and waiting needs `listen`.
   *
   * @defaultValue false
   */
  readonly pooler?: boolean | undefined;
  /**
   * How waiters hear of what other processes complete: `LISTEN` on one more connection. With a pooler, give a driver whose
   * address leads to the server itself. `false`: waiters read from time to time instead.
   *
   * @defaultValue the driver itself, or `false` with `pooler`
   */
  readonly listen?: PostgresListener | false | undefined;
  /**
   * Whether a standby can be promoted that has not got everything that was acknowledged (asynchronous replication). A claim or a
   * completion that is forgotten is work done twice, so at-most-once is then refused unless it accepts lost writes.
   *
   * @defaultValue false
   */
  readonly asynchronousStandby?: boolean | undefined;
  /**
   * How often expired records are removed, in milliseconds; 0 leaves it to `purge`. The timer does not keep the process running.
   *
   * @defaultValue 60000
   */
  readonly sweepIntervalMs?: number | undefined;
}

export interface Settings extends TableNames {
  readonly timeoutMs: number;
  readonly connections: number;
  readonly transactions: number;
  readonly pooler: boolean;
  readonly listen: PostgresListener | undefined;
  readonly asynchronousStandby: boolean;
  readonly sweepIntervalMs: number;
}

const DEFAULTS = {
  ...DEFAULT_NAMES,
  timeoutMs: 1_500,
  connections: 6,
  transactions: 10,
  pooler: false,
  asynchronousStandby: false,
  sweepIntervalMs: 60_000,
} as const satisfies Omit<Settings, "listen">;

/** @throws OncekeyError `CONFIGURATION_INVALID` that lists everything that is wrong. */
export function settingsOf(driver: PostgresListener, options: PostgresStoreOptions): Settings {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const { listen, ...set }: typeof DEFAULTS & PostgresStoreOptions = {
    ...DEFAULTS,
    ...Object.fromEntries(given),
  };
  const hears = listen ?? (set.pooler ? false : driver);
  const settings: Settings = { ...set, listen: hears === false ? undefined : hears };
  const problems = [
    ...driverProblems("the first argument", driver),
    ...unknownOptions(options, NAMES),
    ...problemsOfNames(settings),
    ...durationProblems("timeoutMs", settings.timeoutMs, 50, 60_000),
    ...countProblems("connections", settings.connections, 1, 100),
    ...countProblems("transactions", settings.transactions, 1, 1_000),
    ...durationProblems("sweepIntervalMs", settings.sweepIntervalMs, 0),
    ...booleanProblems("pooler", settings.pooler),
    ...booleanProblems("asynchronousStandby", settings.asynchronousStandby),
    ...(settings.listen === undefined ? [] : driverProblems("listen", settings.listen)),
  ];
  if (problems.length > 0) throw configurationError("postgresStore", problems);
  return settings;
}

function driverProblems(what: string, driver: unknown): readonly string[] {
  const { name, open, listen } = (driver ?? {}) as Partial<PostgresDriver>;
  if (typeof name === "string" && typeof open === "function" && typeof listen === "function") return [];
  return [`${what} is a driver, such as fromPg(pool), not a pool, a client or an address`];
}

function booleanProblems(name: string, value: unknown): readonly string[] {
  return typeof value === "boolean" ? [] : [`${name} is true or false`];
}

const NAMES: ReadonlySet<string> = new Set([
  "schema",
  "tablePrefix",
  "timeoutMs",
  "connections",
  "transactions",
  "pooler",
  "listen",
  "asynchronousStandby",
  "sweepIntervalMs",
] satisfies (keyof PostgresStoreOptions)[]);
