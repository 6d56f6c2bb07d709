/**
 * @module
 * The settings of `replayTier`, with their reasons and their bounds.
 */
import { type Clock, systemClock } from "../../core/clock.js";
import { configurationError } from "../../core/errors.js";
import { MIB } from "../../core/limits.js";
import { countProblems, durationProblems, unknownOptions } from "../../core/policy-checks.js";
import { notAStore } from "../../core/store-checks.js";
import type { SharedReplays } from "./shared.js";

export interface ReplayTierOptions {
  /**
   * How long a completed record is replayed from here before the store is asked again, in milliseconds, 1 to 3,600,000. Never
   * longer than the record is kept. After a `forget` its key is refused for this long, and a second. The same in all processes.
   *
   * @defaultValue 30 000
   */
  readonly replayForMs?: number | undefined;
  /** Records that are held here; beyond, the one that was used least lately goes. @defaultValue 10 000 */
  readonly maxRecords?: number | undefined;
  /** Bytes of their results, together. @defaultValue 64 MiB */
  readonly maxBytes?: number | undefined;
  /** A larger result is not held here. @defaultValue 256 KiB */
  readonly maxRecordBytes?: number | undefined;
  /** A second tier that processes share, asked before the store: Redis in front of Postgres. */
  readonly shared?: SharedReplays | undefined;
  /** The longest wait for `shared`; then the store is asked. 1 to 10,000. @defaultValue 50 */
  readonly sharedTimeoutMs?: number | undefined;
  /** @defaultValue the platform's clock */
  readonly clock?: Clock | undefined;
}

export type Settings = {
  readonly [Name in Exclude<keyof ReplayTierOptions, "shared">]-?: NonNullable<ReplayTierOptions[Name]>;
} & Pick<ReplayTierOptions, "shared">;

const DEFAULTS = {
  replayForMs: 30_000,
  maxRecords: 10_000,
  maxBytes: 64 * MIB,
  maxRecordBytes: MIB / 4,
  sharedTimeoutMs: 50,
  clock: systemClock,
} satisfies ReplayTierOptions;

const NAMES: ReadonlySet<string> = new Set([...Object.keys(DEFAULTS), "shared"]);
const HOUR_MS = 3_600_000;

/** @throws OncekeyError `CONFIGURATION_INVALID` with every problem. */
export function settingsOf(store: unknown, options: ReplayTierOptions): Settings {
  const set = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const settings = { ...DEFAULTS, ...set } as Settings;
  const problems = [
    ...notAStore(store),
    ...unknownOptions(options, NAMES),
    ...durationProblems("replayForMs", settings.replayForMs, 1, HOUR_MS),
    ...durationProblems("sharedTimeoutMs", settings.sharedTimeoutMs, 1, 10_000),
    ...countProblems("maxRecords", settings.maxRecords, 1),
    ...countProblems("maxBytes", settings.maxBytes, 1),
    ...countProblems("maxRecordBytes", settings.maxRecordBytes, 0),
    ...sharedProblems(settings.shared),
  ];
  if (problems.length > 0) throw configurationError("replayTier", problems);
  return settings;
}

function sharedProblems(shared: unknown): string[] {
  if (shared === undefined) return [];
  const members = (shared ?? {}) as Readonly<Record<string, unknown>>;
  const fits = ["get", "set", "delete"].every((name) => typeof members[name] === "function");
  return fits ? [] : ["shared must have the functions get, set and delete"];
}
