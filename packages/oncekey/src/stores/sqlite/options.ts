/**
 * @module
 * The settings of `sqliteStore`, with their reasons and their bounds.
 */
import { type Clock, systemClock } from "../../core/clock.js";
import { configurationError } from "../../core/errors.js";
import { durationProblems, unknownOptions } from "../../core/policy-checks.js";
import type { SqliteDriver } from "./driver.js";
import { problemsOfPrefix } from "./schema.js";

/** A property that is `undefined` is not set. */
export interface SqliteStoreOptions {
  /**
   * When a write counts as kept. `"full"`: once the disk has it. `"normal"`: once the operating system has it:
   * a killed process loses nothing, but a power cut may take the last moments, and a claim or a completion
   * that is forgotten is a second charge. Choose `"normal"` only where running twice is cheap; at-most-once
   * is then refused. Writes of one turn of the event loop share one wait for the disk, so `"full"` costs less
   * than it sounds.
   *
   * @defaultValue "full"
   */
  readonly synchronous?: "full" | "normal" | undefined;
  /**
   * Begins the names of the tables (`oncekey_records`, `oncekey_migrations`). 1 to 40 letters, digits and
   * underscores. Set it where two programs that shall not meet share a file.
   *
   * @defaultValue "oncekey_"
   */
  readonly tablePrefix?: string | undefined;
  /**
   * How long a call waits while another connection writes, in milliseconds, 1 to 60,000. Afterwards it fails
   * with `STORE_UNAVAILABLE` and has changed nothing. Keep it below `storeTimeoutMs` (2,000 unless set), so
   * that the caller hears of it from here.
   *
   * @defaultValue 1500
   */
  readonly busyWaitMs?: number | undefined;
  /**
   * How often expired records are removed, in milliseconds; 0 leaves it to `purge`. The timer does not keep
   * the process running.
   *
   * @defaultValue 60000
   */
  readonly sweepIntervalMs?: number | undefined;
  /** Judges leases, retention and the age of transactions. For tests. */
  readonly clock?: Clock | undefined;
}

export interface Settings {
  readonly synchronous: "full" | "normal";
  readonly tablePrefix: string;
  readonly busyWaitMs: number;
  readonly sweepIntervalMs: number;
  readonly clock: Clock;
}

const MAX_BUSY_WAIT_MS = 60_000;

/** @throws OncekeyError `CONFIGURATION_INVALID` that lists everything that is wrong. */
export function settingsOf(driver: unknown, options: SqliteStoreOptions): Settings {
  const settings: Settings = {
    synchronous: options.synchronous ?? "full",
    tablePrefix: options.tablePrefix ?? "oncekey_",
    busyWaitMs: options.busyWaitMs ?? 1_500,
    sweepIntervalMs: options.sweepIntervalMs ?? 60_000,
    clock: options.clock ?? systemClock,
  };
  const problems = [
    ...problemsOfDriver(driver),
    ...unknownOptions(options, NAMES),
    ...problemsOfPrefix(settings.tablePrefix),
    ...durationProblems("busyWaitMs", settings.busyWaitMs, 1, MAX_BUSY_WAIT_MS),
    ...durationProblems("sweepIntervalMs", settings.sweepIntervalMs, 0),
  ];
  if (settings.synchronous !== "full" && settings.synchronous !== "normal") {
    problems.push('synchronous must be one of "full", "normal"');
  }
  if (problems.length > 0) throw configurationError("sqliteStore", problems);
  return settings;
}

function problemsOfDriver(driver: unknown): readonly string[] {
  const open = (driver as Partial<SqliteDriver> | null | undefined)?.open;
  if (typeof open === "function" && typeof (driver as Partial<SqliteDriver>).name === "string") return [];
  return [
    'the first argument is a driver, such as fromLibsql(() => new Database("orders.db")), not a connection or a path',
  ];
}

const NAMES: ReadonlySet<string> = new Set([
  "synchronous",
  "tablePrefix",
  "busyWaitMs",
  "sweepIntervalMs",
  "clock",
] satisfies (keyof SqliteStoreOptions)[]);
