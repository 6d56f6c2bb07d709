/**
 * @module
 * Finds everything that is wrong with a policy, the limits, or one option of a kind: a duration, a count, a switch, a function.
 *
 * Invariant: each function returns all the problems it can see, each a phrase that begins with the option's name; none throws,
 * whatever it is given. An option that is `undefined` is not set, which is never a problem.
 */
import { isOncekeyError } from "./errors.js";
import { DEFAULT_LIMITS, type LimitOptions, type Limits, MAX_DURATION_MS } from "./limits.js";
import { DURATIONS, POLICY_NAMES, type Policy, type StoreFacts } from "./policy.js";
import type { Guarantee } from "./record.js";

const CHOICES = {
  guarantee: ["at-least-once", "at-most-once", "exactly-once"],
  onCompleted: ["replay", "reject"],
  onStoreDown: ["reject", "run"],
} as const;

/** Legal pairs: a guarantee, and what a lapse may mean under it. */
const LAPSES: Readonly<Record<Guarantee, readonly ("rerun" | "hold" | "reconcile")[]>> = {
  "at-least-once": ["rerun", "reconcile", "hold"],
  "at-most-once": ["hold", "reconcile"],
  "exactly-once": ["rerun"],
};

/** Everything that is wrong with a policy, each with its name. */
export function policyProblems(policy: Policy, store: StoreFacts): string[] {
  return [...valueProblems(policy), ...pairProblems(policy), ...storeProblems(policy, store)];
}

function valueProblems(policy: Policy): string[] {
  const problems: string[] = [];
  for (const name of Object.keys(DURATIONS) as (keyof typeof DURATIONS)[]) {
    const value: unknown = policy[name];
    if (value !== undefined) problems.push(...durationProblems(name, value));
  }
  for (const [name, allowed] of Object.entries(CHOICES)) {
    const value: unknown = policy[name as keyof typeof CHOICES];
    if (value !== undefined && !(allowed as readonly unknown[]).includes(value)) {
      problems.push(`${name} must be one of ${allowed.map((one) => `"${one}"`).join(", ")}`);
    }
  }
  problems.push(...countProblems("maxAttempts", policy.maxAttempts, 1));
  problems.push(...countProblems("maxResultBytes", policy.maxResultBytes, 0));
  problems.push(...functionProblems("keep", policy.keep));
  problems.push(...switchProblems("acceptsLostWrites", policy.acceptsLostWrites));
  problems.push(...switchProblems("keyLabels", policy.keyLabels));
  return [...problems, ...inFlightProblems(policy.onInFlight), ...lapsedProblems(policy.onLapsed)];
}

/** One wording for every duration, whoever takes it. */
export function durationProblems(name: string, value: unknown, least = 1, most = MAX_DURATION_MS): string[] {
  const fits = typeof value === "number" && value >= least && value <= most;
  return fits
    ? []
    : [`${name} must be a number of milliseconds from ${least} to ${most}, not ${shown(value)}`];
}

/** The same for counts. What is `undefined` is not set. */
export function countProblems(name: string, value: unknown, least: number, most?: number): string[] {
  const fits =
    Number.isSafeInteger(value) &&
    (value as number) >= least &&
    (most === undefined || (value as number) <= most);
  if (value === undefined || fits) return [];
  const range = most === undefined ? `of at least ${least}` : `from ${least} to ${most}`;
  return [`${name} must be a whole number ${range}, not ${shown(value)}`];
}

/** The text "false" would count as true. */
function switchProblems(name: string, value: unknown): string[] {
  return value === undefined || typeof value === "boolean"
    ? []
    : [`${name} must be true or false, not ${shown(value)}`];
}

export function functionProblems(name: string, value: unknown): string[] {
  return value === undefined || typeof value === "function" ? [] : [`${name} must be a function`];
}

/** An object that has members of its own to look at: no list, no function. */
export function isOptions(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What `make` makes, or `undefined` once its problems have joined the others. */
export function collectProblems<T>(problems: string[], make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    if (!isOncekeyError(error, "CONFIGURATION_INVALID")) throw error;
    problems.push(...error.problems);
    return undefined;
  }
}

/** An object may have no text, or throw when it is asked for it. */
function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 40));
  if (typeof value === "function") return "a function";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

function inFlightProblems(onInFlight: unknown): string[] {
  if (onInFlight === undefined || onInFlight === "reject") return [];
  if (!isOptions(onInFlight)) return ['onInFlight must be "reject" or { waitMs, onReleased }'];
  const { waitMs, onReleased, ...unknown } = onInFlight;
  const problems = Object.keys(unknown).map((name) => `onInFlight.${name} does not exist`);
  if (waitMs !== undefined) problems.push(...durationProblems("onInFlight.waitMs", waitMs, 0));
  if (onReleased !== undefined && onReleased !== "takeover" && onReleased !== "refuse") {
    problems.push('onInFlight.onReleased must be "takeover" or "refuse"');
  }
  return problems;
}

function lapsedProblems(onLapsed: unknown): string[] {
  const fits =
    onLapsed === undefined || onLapsed === "rerun" || onLapsed === "hold" || typeof onLapsed === "function";
  return fits ? [] : ['onLapsed must be "rerun", "hold" or a function'];
}

function pairProblems(policy: Policy): string[] {
  const problems: string[] = [];
  const { guarantee = "at-least-once", onLapsed } = policy;
  const lapse = typeof onLapsed === "function" ? "reconcile" : onLapsed;
  const legal: readonly string[] = CHOICES.guarantee.includes(guarantee) ? LAPSES[guarantee] : [];
  if (typeof lapse === "string" && legal.length > 0 && !legal.includes(lapse)) {
    problems.push(
      `onLapsed "${lapse}" contradicts guarantee "${guarantee}", which allows ${legal.join(", ")}`,
    );
  }
  if (guarantee !== "at-least-once" && policy.onStoreDown === "run") {
    problems.push(`onStoreDown "run" contradicts guarantee "${guarantee}": unprotected work may start twice`);
  }
  const { leaseMs = DURATIONS.leaseMs, storeTimeoutMs } = policy;
  // What is no number has its own problem, and may not even be one to compute with.
  const comparable = typeof leaseMs === "number" && typeof storeTimeoutMs === "number";
  if (comparable && storeTimeoutMs > leaseMs / 4) {
    problems.push(
      `storeTimeoutMs must be at most a quarter of leaseMs (${leaseMs / 4}), so that a renewal can be repeated`,
    );
  }
  return problems;
}

function storeProblems(policy: Policy, store: StoreFacts): string[] {
  if (policy.guarantee === "exactly-once" && !store.transactions) {
    return [`guarantee "exactly-once" needs a store with transactions; ${store.name} has none`];
  }
  if (policy.guarantee !== "at-most-once" || policy.acceptsLostWrites === true) return [];
  const loses = Object.entries(store.traits.forgetsOn).filter(([, forgets]) => forgets);
  if (loses.length === 0) return [];
  const causes = loses.map(([cause]) => cause).join(", ");
  return [
    `guarantee "at-most-once" needs a store that keeps what it acknowledged; ${store.name} can lose it on ${causes} (acceptsLostWrites: true takes the risk)`,
  ];
}

/** Limits with their defaults, checked like a policy. */
export function resolveLimits(limits: LimitOptions = {}): {
  readonly limits: Limits;
  readonly problems: string[];
} {
  if (!isOptions(limits)) return { limits: DEFAULT_LIMITS, problems: ["limits must be an object"] };
  const problems: string[] = [];
  for (const [name, value] of Object.entries(limits)) {
    if (!Object.hasOwn(DEFAULT_LIMITS, name)) problems.push(`limits.${name} does not exist`);
    else problems.push(...countProblems(`limits.${name}`, value, 1));
  }
  const set = Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
  return { limits: { ...DEFAULT_LIMITS, ...set }, problems };
}

/** A misspelt option would otherwise be a default in silence. */
export function unknownOptions(options: object, names: ReadonlySet<string> = POLICY_NAMES): string[] {
  return Object.keys(options)
    .filter((name) => !names.has(name))
    .map((name) => `${name} is not an option`);
}
