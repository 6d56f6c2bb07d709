/**
 * @module
 * What a job may choose, the defaults, and what must hold between them.
 *
 * Invariants: every mistake is found when the job is made, all at once; what is said for HTTP routes in the instance's policy
 * (`onStoreDown: "run"`, `onInFlight`, `keep`, a short retention) never weakens a job.
 */
import { configurationError } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import { POLICY_NAMES, type Policy } from "../core/policy.js";
import {
  collectProblems,
  countProblems,
  durationProblems,
  functionProblems,
  isOptions,
  unknownOptions,
} from "../core/policy-checks.js";
import type { Guarantee } from "../core/record.js";
import type { Work } from "../core/work.js";
import type { Calendar } from "./calendar.js";

/** Work of one occurrence. `plannedAt` is the instant it was planned for, the same on every instance and in every attempt. */
export type JobWork<Tx = unknown, G extends Guarantee = Guarantee, Held = never> = Work<Tx, G, Held> & {
  readonly plannedAt: Date;
};

/** What a job does once for each occurrence. What it returns is not kept. */
export type JobFunction<Tx = unknown, G extends Guarantee = Guarantee, Held = never> = (
  work: JobWork<Tx, G, Held>,
) => unknown;

/** An attempt that failed here, or an occurrence that this instance has given up. */
export interface FailedOccurrence {
  readonly job: string;
  readonly plannedAt: Date;
  /** `undefined`: no attempt was made here. */
  readonly attempt: number | undefined;
  /** `false`: it will be tried again, here or elsewhere. */
  readonly givenUp: boolean;
}

/** Which members of a policy make no sense for a job: who fires it wants neither an answer nor a replay. */
type JobPolicy = Omit<Policy, "onCompleted" | "onInFlight" | "keep" | "maxResultBytes">;

export interface JobOptions<G extends Guarantee = Guarantee> extends JobPolicy {
  /** Names the job, the same in every process and deploy. */
  readonly job: string;
  readonly guarantee?: G | undefined;
  /**
   * How long after its planned instant an attempt may still start: longer than a lease, so that a crash can be made up for.
   * @defaultValue until the next planned instant, but at least two leases and at most a day
   */
  readonly windowMs?: number | undefined;
  /** While an earlier occurrence runs: leave this one out, let it wait for its turn, or run both. @defaultValue `"skip"` */
  readonly overlap?: "skip" | "queue" | "allow" | undefined;
  /** Which occurrences that were planned while no instance was up are run later. @defaultValue `"none"` */
  readonly missed?: "none" | "latest" | "all" | undefined;
  /** How many planned instants are looked at for missed ones, 1 to 1,000. @defaultValue 100 */
  readonly maxMissed?: number | undefined;
  /** The pause after a failed attempt; it doubles with each, up to five minutes. @defaultValue 10 000 */
  readonly retryDelayMs?: number | undefined;
  /** Starts of one occurrence, crashed ones included. @defaultValue 3 */
  readonly maxAttempts?: number | undefined;
  /** Renewal of the lease ends here. @defaultValue 86 400 000 */
  readonly maxRunMs?: number | undefined;
  /**
   * Hears of each attempt that failed here, and of each occurrence that was given up here. `"throw"`: the scheduler gets the error
   * of an occurrence that was given up. @defaultValue nobody; the event `occurrence` tells it as well
   */
  readonly onError?: "throw" | ((error: unknown, occurrence: FailedOccurrence) => void) | undefined;
}

/** A job whose options are complete, except for what its schedule decides. */
export interface JobSettings {
  readonly job: string;
  readonly windowMs: number | undefined;
  readonly retentionMs: number | undefined;
  /** What the instance keeps records for. */
  readonly usualRetentionMs: number;
  readonly leaseMs: number;
  readonly overlap: "skip" | "queue" | "allow";
  readonly missed: "none" | "latest" | "all";
  readonly maxMissed: number;
  readonly retryDelayMs: number;
  readonly maxAttempts: number;
  readonly onError: "throw" | ((error: unknown, occurrence: FailedOccurrence) => void) | undefined;
  /** Of each attempt. */
  readonly policy: Policy;
}

const MAX_WINDOW_MS = 86_400_000;
export const MAX_RETRY_DELAY_MS = 300_000;
/** A record outlives its window by this, for instances whose clock is behind and which fire the same instant later. */
export const CLOCK_MARGIN_MS = 3_600_000;
/** How long an outage may last whose occurrences can be made up for. */
const MAKE_UP_MS = 7 * 86_400_000;
const JOB_DEFAULTS = { maxAttempts: 3, maxRunMs: 86_400_000, maxMissed: 100, retryDelayMs: 10_000 } as const;

const OWN_NAMES = [
  "job",
  "windowMs",
  "overlap",
  "missed",
  "maxMissed",
  "retryDelayMs",
  "onError",
] as const satisfies readonly (keyof JobOptions)[];
const NOT_OF_JOBS: ReadonlySet<string> = new Set(["onCompleted", "onInFlight", "keep", "maxResultBytes"]);
const NAMES = [...OWN_NAMES, ...[...POLICY_NAMES].filter((name) => !NOT_OF_JOBS.has(name))];

/**
 * @param own names and problems of what the adapter takes beside `JobOptions`.
 * @throws OncekeyError `CONFIGURATION_INVALID` with every problem; `GUARANTEE_UNSUPPORTED`.
 */
export function jobSettings(
  { internals }: Idempotency,
  options: JobOptions,
  run: unknown,
  own: { readonly names?: readonly string[]; readonly problems?: readonly string[] } = {},
): JobSettings {
  if (!isOptions(options)) throw configurationError("Job", ["options must be an object with job"]);
  const problems = [...jobProblems(options), ...(own.problems ?? [])];
  problems.push(...unknownOptions(options, new Set([...NAMES, ...(own.names ?? [])])));
  problems.push(...(typeof run === "function" ? [] : ["the work must be a function, the last argument"]));
  const policy = policyOf(options);
  const usual = collectProblems(problems, () => internals.policyFor());
  const resolved = collectProblems(problems, () => internals.policyFor(policy));
  if (resolved === undefined || usual === undefined) throw configurationError("Job", problems);
  const { windowMs, retentionMs, onError, overlap = "skip", missed = "none" } = options;
  const { leaseMs, maxAttempts = JOB_DEFAULTS.maxAttempts } = resolved;
  if (windowMs !== undefined && windowMs <= leaseMs) {
    problems.push(
      `windowMs must be longer than leaseMs (${leaseMs}): a crash is noticed when the lease has lapsed`,
    );
  }
  if (windowMs !== undefined && retentionMs !== undefined && retentionMs < windowMs) {
    problems.push("retentionMs must be at least windowMs: whoever fires late would run it again");
  }
  if (problems.length > 0) throw configurationError("Job", problems);
  return {
    ...{ job: options.job, windowMs, retentionMs, leaseMs, overlap, missed, maxAttempts, onError, policy },
    usualRetentionMs: usual.retentionMs,
    maxMissed: options.maxMissed ?? JOB_DEFAULTS.maxMissed,
    retryDelayMs: options.retryDelayMs ?? JOB_DEFAULTS.retryDelayMs,
  };
}

function jobProblems(options: JobOptions): string[] {
  const { job, windowMs, overlap, missed, maxMissed, retryDelayMs, onError } = options;
  const problems = typeof job === "string" && job !== "" ? [] : ["job must be a text that names the job"];
  if (windowMs !== undefined) problems.push(...durationProblems("windowMs", windowMs));
  if (retryDelayMs !== undefined) problems.push(...durationProblems("retryDelayMs", retryDelayMs));
  problems.push(...countProblems("maxMissed", maxMissed, 1, 1_000));
  problems.push(...choiceProblems("overlap", overlap, ["skip", "queue", "allow"]));
  problems.push(...choiceProblems("missed", missed, ["none", "latest", "all"]));
  return onError === "throw" ? problems : [...problems, ...functionProblems("onError", onError)];
}

function choiceProblems(name: string, value: unknown, allowed: readonly string[]): string[] {
  const fits = value === undefined || (typeof value === "string" && allowed.includes(value));
  return fits ? [] : [`${name} must be one of ${allowed.map((one) => `"${one}"`).join(", ")}`];
}

/** What stands here wins over the instance's policy, which is made for callers who wait for an answer. */
function policyOf(options: JobOptions): Policy {
  const given = Object.entries(options).filter(
    ([name, value]) => POLICY_NAMES.has(name) && value !== undefined,
  );
  return {
    maxAttempts: JOB_DEFAULTS.maxAttempts,
    maxRunMs: JOB_DEFAULTS.maxRunMs,
    // All instances would run it, each by itself.
    onStoreDown: "reject",
    // The key is the planned instant, which an operator wants to read.
    keyLabels: true,
    ...Object.fromEntries(given),
    onCompleted: "replay",
    keep: (ending) => ending.kind === "returned",
  };
}

/** How long attempts of the occurrence planned for `plannedMs` may start. */
export function windowOf(settings: JobSettings, calendar: Calendar | undefined, plannedMs: number): number {
  const { windowMs, leaseMs, retentionMs = Number.POSITIVE_INFINITY } = settings;
  if (windowMs !== undefined) return windowMs;
  const untilNextMs = (calendar?.nextMs(plannedMs) ?? Number.POSITIVE_INFINITY) - plannedMs;
  return Math.min(Math.max(untilNextMs, 2 * leaseMs), MAX_WINDOW_MS, retentionMs);
}

/** How long its completion is remembered: past its window on any clock, and, for missed ones, over an outage. */
export function retentionOf(
  settings: JobSettings,
  calendar: Calendar | undefined,
  plannedMs: number,
): number {
  const { missed, retentionMs, usualRetentionMs } = settings;
  if (retentionMs !== undefined) return retentionMs;
  const leastMs = windowOf(settings, calendar, plannedMs) + CLOCK_MARGIN_MS;
  if (missed === "none") return Math.max(usualRetentionMs, leastMs);
  const nextMs = calendar?.nextMs(plannedMs) ?? plannedMs;
  return Math.max(usualRetentionMs, leastMs, MAKE_UP_MS + 2 * (nextMs - plannedMs));
}
