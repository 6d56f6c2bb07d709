/**
 * @module
 * The settings of `memoryStore`, with their reasons and their bounds.
 */
import { type Clock, systemClock } from "../../core/clock.js";
import { configurationError } from "../../core/errors.js";
import { MIB } from "../../core/limits.js";
import { countProblems, durationProblems, unknownOptions } from "../../core/policy-checks.js";
import type { RecordInfo } from "../../core/record.js";

/** A property that is `undefined` is not set. */
export interface MemoryStoreOptions {
  /**
   * Records kept at once, 1 to 16,777,216. When that many are there, new keys are refused (503
   * `CAPACITY_EXCEEDED`); keys that are known go on. A record takes about 0.6 KB beside its answer.
   *
   * @defaultValue 200_000
   */
  readonly maxRecords?: number | undefined;
  /**
   * Records that one scope may have, 1 to `maxRecords`, so that one caller cannot fill the store for the
   * others. Raise it to `maxRecords` where all callers share one scope.
   *
   * @defaultValue half of `maxRecords`
   */
  readonly maxRecordsPerScope?: number | undefined;
  /**
   * Bytes of answers kept at once. Beyond them the oldest completed records lose their body and answer as
   * tombstones: the work is still known to be done.
   *
   * @defaultValue 128 MiB
   */
  readonly maxBytes?: number | undefined;
  /**
   * What a full store does with a new key. `"forget-oldest-completed"` makes room by forgetting the record
   * that was completed first (of the same scope, if that is what is full), whose repeat would run again:
   * choose it where running twice is cheap. Live claims and unknown outcomes are never forgotten.
   *
   * @defaultValue "refuse"
   */
  readonly onFull?: "refuse" | "forget-oldest-completed" | undefined;
  /** Told of each record that was forgotten before its time, soon after. Log it. */
  readonly onForgotten?: ((record: RecordInfo) => void) | undefined;
  /**
   * How often expired records are removed, in milliseconds; 0 leaves it to the calls that come in, each of
   * which removes a few. The timer runs only while something is to expire, and does not keep the process
   * running.
   *
   * @defaultValue 1000
   */
  readonly sweepIntervalMs?: number | undefined;
  /** Judges leases and retention. For tests. */
  readonly clock?: Clock | undefined;
}

export interface Settings {
  readonly maxRecords: number;
  readonly maxRecordsPerScope: number;
  readonly maxBytes: number;
  readonly forgets: boolean;
  readonly onForgotten: ((record: RecordInfo) => void) | undefined;
  readonly sweepIntervalMs: number;
  readonly clock: Clock;
}

/** A JavaScript `Map` holds this many entries; ours hold a 256th each. */
const MOST_RECORDS = 2 ** 24;

/** @throws OncekeyError `CONFIGURATION_INVALID` that lists everything that is wrong. */
export function settingsOf(options: MemoryStoreOptions): Settings {
  const maxRecords = options.maxRecords ?? 200_000;
  const onFull = options.onFull ?? "refuse";
  const settings: Settings = {
    maxRecords,
    maxRecordsPerScope: options.maxRecordsPerScope ?? Math.ceil(maxRecords / 2),
    maxBytes: options.maxBytes ?? 128 * MIB,
    forgets: onFull === "forget-oldest-completed",
    onForgotten: options.onForgotten,
    sweepIntervalMs: options.sweepIntervalMs ?? 1_000,
    clock: options.clock ?? systemClock,
  };
  const problems = [
    ...unknownOptions(options, NAMES),
    ...countProblems("maxRecords", maxRecords, 1, MOST_RECORDS),
    ...countProblems("maxBytes", settings.maxBytes, 0),
    ...durationProblems("sweepIntervalMs", settings.sweepIntervalMs, 0),
  ];
  // Judged against a bound that is itself sound, or its message would speak of NaN.
  if (options.maxRecordsPerScope !== undefined) {
    const most = problems.length === 0 ? maxRecords : MOST_RECORDS;
    problems.push(...countProblems("maxRecordsPerScope", options.maxRecordsPerScope, 1, most));
  }
  if (onFull !== "refuse" && onFull !== "forget-oldest-completed") {
    problems.push('onFull must be one of "refuse", "forget-oldest-completed"');
  }
  if (options.onForgotten !== undefined && typeof options.onForgotten !== "function") {
    problems.push("onForgotten must be a function");
  }
  if (problems.length > 0) throw configurationError("memoryStore", problems);
  return settings;
}

const NAMES: ReadonlySet<string> = new Set([
  "maxRecords",
  "maxRecordsPerScope",
  "maxBytes",
  "onFull",
  "onForgotten",
  "sweepIntervalMs",
  "clock",
] satisfies (keyof MemoryStoreOptions)[]);
