/**
 * @module
 * Finds everything that is wrong with a policy, a duration, a count or the limits.
 *
 * Invariant: each function returns all the problems it can see, each a phrase that begins with the option's name; none throws.
 */
import { DEFAULT_LIMITS, type LimitOptions, type Limits, MAX_DURATION_MS } from "./limits.js";
import { DURATIONS, POLICY_NAMES, type Policy, type StoreFacts, storeTimeout } from "./policy.js";
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
  if (policy.keep !== undefined && typeof policy.keep !== "function")
    problems.push("keep must be a function");
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

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 40)) : String(value);
}

function inFlightProblems(onInFlight: unknown): string[] {
  if (onInFlight === undefined || onInFlight === "reject") return [];
  if (typeof onInFlight !== "object" || onInFlight === null) {
    return ['onInFlight must be "reject" or { waitMs, onReleased }'];
  }
  const { waitMs, onReleased } = onInFlight as { readonly waitMs?: unknown; readonly onReleased?: unknown };
  const problems = waitMs === undefined ? [] : durationProblems("onInFlight.waitMs", waitMs, 0);
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
  const legal = LAPSES[guarantee] as readonly string[] | undefined;
  if (lapse !== undefined && legal !== undefined && !legal.includes(lapse)) {
    problems.push(
      `onLapsed "${lapse}" contradicts guarantee "${guarantee}", which allows ${legal.join(", ")}`,
    );
  }
  if (guarantee !== "at-least-once" && policy.onStoreDown === "run") {
    problems.push(`onStoreDown "run" contradicts guarantee "${guarantee}": unprotected work may start twice`);
  }
  const leaseMs = policy.leaseMs ?? DURATIONS.leaseMs;
  if (storeTimeout(policy) > leaseMs / 4) {
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
export function resolveLimits(limits: LimitOptions | undefined): {
  readonly limits: Limits;
  readonly problems: string[];
} {
  const problems: string[] = [];
  for (const [name, value] of Object.entries(limits ?? {})) {
    if (!(name in DEFAULT_LIMITS)) problems.push(`limits.${name} does not exist`);
    else problems.push(...countProblems(`limits.${name}`, value, 1));
  }
  const set = Object.fromEntries(Object.entries(limits ?? {}).filter(([, value]) => value !== undefined));
  return { limits: { ...DEFAULT_LIMITS, ...set }, problems };
}

/** A misspelt option would otherwise be a default in silence. */
export function unknownOptions(options: object, names: ReadonlySet<string> = POLICY_NAMES): string[] {
  return Object.keys(options).flatMap((name) => (names.has(name) ? [] : [`${name} is not an option`]));
}
