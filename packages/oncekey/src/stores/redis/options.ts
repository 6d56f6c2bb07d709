/**
 * @module
 * The settings of `redisStore`, with their reasons and their bounds.
 */
import { configurationError } from "../../core/errors.js";
import { durationProblems, unknownOptions } from "../../core/policy-checks.js";
import type { RedisDriver } from "./driver.js";
import type { DurabilityOptions } from "./durability.js";

/** A property that is `undefined` is not set. */
export interface RedisStoreOptions {
  /**
   * Begins the name of every key, after what the client itself puts before its keys. 1 to 100 characters. Set it where
   * two programs that shall not meet share a server. With a part in braces (`{orders}:`) a cluster keeps all records on one node.
   *
   * @defaultValue "oncekey:"
   */
  readonly prefix?: string | undefined;
  /**
   * How long a server may owe an answer before its connection is given up, in milliseconds, 50 to 60,000. What was sent on it
   * has failed then, with an unknown result. Keep it below `storeTimeoutMs` (2,000 unless set), so that the caller hears
   * of it from here.
   *
   * @defaultValue 1500
   */
  readonly answerTimeoutMs?: number | undefined;
  /**
   * What has to be confirmed before a claim, a renewal or a completion is acknowledged. A call that is not confirmed in time
   * fails with `STORE_UNAVAILABLE` although it has landed; it is then asked again, or released. Costs a wait for the network or the disk for
   * each, and calls behind it on the same connection wait with it.
   *
   * @defaultValue nothing: what the server acknowledges is acknowledged
   */
  readonly durability?: DurabilityOptions | undefined;
}

export interface Settings {
  readonly prefix: string;
  readonly answerTimeoutMs: number;
  readonly durability: DurabilityOptions;
}

const MAX_PREFIX = 100;

/** @throws OncekeyError `CONFIGURATION_INVALID` that lists everything that is wrong. */
export function settingsOf(driver: unknown, options: RedisStoreOptions): Settings {
  const settings: Settings = {
    prefix: options.prefix ?? "oncekey:",
    answerTimeoutMs: options.answerTimeoutMs ?? 1_500,
    durability: options.durability ?? {},
  };
  const { prefix } = settings;
  const problems = [
    ...problemsOfDriver(driver),
    ...unknownOptions(options, NAMES),
    ...durationProblems("answerTimeoutMs", settings.answerTimeoutMs, 50, 60_000),
    ...problemsOfDurability(settings),
  ];
  if (typeof prefix !== "string" || prefix.length === 0 || prefix.length > MAX_PREFIX) {
    problems.push(`prefix is 1 to ${MAX_PREFIX} characters`);
  }
  if (problems.length > 0) throw configurationError("redisStore", problems);
  return settings;
}

function problemsOfDriver(driver: unknown): readonly string[] {
  if (typeof (driver as Partial<RedisDriver> | null | undefined)?.open === "function") return [];
  return [
    "the first argument is a driver, such as fromIoredis(redis) or fromNodeRedis(client), not a client or an address",
  ];
}

function problemsOfDurability({ durability, answerTimeoutMs }: Settings): readonly string[] {
  const { wait, waitAof } = durability;
  const problems = [...unknownOptions(durability, DURABILITY_NAMES)];
  if (wait !== undefined && !isCount(wait.replicas, 1)) {
    problems.push("durability.wait.replicas is a whole number from 1");
  }
  if (waitAof !== undefined) {
    if (waitAof.local !== 0 && waitAof.local !== 1) problems.push("durability.waitAof.local is 0 or 1");
    if (!isCount(waitAof.replicas, 0)) problems.push("durability.waitAof.replicas is a whole number from 0");
  }
  // A connection that waits longer than a server may be silent would be given up by ourselves.
  for (const [name, one] of Object.entries({ wait, waitAof })) {
    if (one === undefined) continue;
    problems.push(...durationProblems(`durability.${name}.timeoutMs`, one.timeoutMs, 1, answerTimeoutMs - 1));
  }
  return problems;
}

function isCount(value: unknown, least: number): boolean {
  return Number.isInteger(value) && Number(value) >= least && Number(value) <= 100;
}

const NAMES: ReadonlySet<string> = new Set([
  "prefix",
  "answerTimeoutMs",
  "durability",
] satisfies (keyof RedisStoreOptions)[]);

const DURABILITY_NAMES: ReadonlySet<string> = new Set([
  "wait",
  "waitAof",
] satisfies (keyof DurabilityOptions)[]);
