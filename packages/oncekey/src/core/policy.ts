/**
 * @module
 * What a caller may choose, the defaults, and how the layers meet: call or route, then instance, then preset,
 * then built-in.
 *
 * Invariants: a property that is `undefined` is not set; an explicit value equal to a default still wins;
 * every mistake is found when the policy is resolved, all of them at once. Choices that only HTTP has
 * (keys, scopes, fingerprints of requests) are left to `http/options.ts`.
 */
import { configurationError } from "./errors.js";
import { DEFAULT_LIMITS, type Limits, MAX_DURATION_MS } from "./limits.js";
import type { Guarantee, OnLapse, RecordInfo } from "./record.js";
import type { StoreTraits } from "./store.js";

/** How work ended: the one thing that `keep` looks at. */
export type Ending =
  | { readonly kind: "returned"; readonly value: unknown }
  | { readonly kind: "threw"; readonly error: unknown }
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly headers: readonly (readonly [string, string])[];
    };

/** What a reconciler gets to see of a record whose outcome is unknown. */
export interface UnknownRecord extends RecordInfo {
  /** The same key that the work gave to other services, to ask them with. */
  downstreamKey(name: string): string;
}

/**
 * What became of an unknown outcome.
 *
 * - `done`: it happened; `result` is what repeats get (a value, or over HTTP an answer). Without `result`
 *   the record becomes a tombstone.
 * - `not-done`: nothing happened; the work is started again.
 * - `unknown`: cannot be told yet.
 */
export type Reconciliation =
  | { readonly kind: "done"; readonly result?: unknown }
  | { readonly kind: "not-done" }
  | { readonly kind: "unknown" };

export type Reconcile = (record: UnknownRecord) => Reconciliation | Promise<Reconciliation>;

/** What a repeat does while the first is in flight. */
export type OnInFlight =
  | "reject"
  | {
      /** How long it waits for the result. @defaultValue 5 000 */
      readonly waitMs?: number | undefined;
      /** When the attempt fails: one waiter runs the work, or all are refused. @defaultValue `"takeover"` */
      readonly onReleased?: "takeover" | "refuse" | undefined;
    };

/** Every member may be left out or `undefined`: then the next layer decides. Durations are milliseconds. */
export interface Policy {
  /** What the caller is promised. @defaultValue `"at-least-once"` */
  readonly guarantee?: Guarantee | undefined;
  /** How long a claim holds without renewal, and so how long a crash keeps a key. Renewed every third of it. @defaultValue 30 000 */
  readonly leaseMs?: number | undefined;
  /** How long a completed record answers repeats, counted from completion. @defaultValue 86 400 000 */
  readonly retentionMs?: number | undefined;
  /** Whether a repeat of completed work gets the first result or a refusal. @defaultValue `"replay"` */
  readonly onCompleted?: "replay" | "reject" | undefined;
  /** @defaultValue `{ waitMs: 5000, onReleased: "takeover" }`; `"reject"` where `onCompleted` is */
  readonly onInFlight?: OnInFlight | undefined;
  /**
   * What a lapsed claim means: run the work again, hold it until somebody says what happened, or ask.
   * @defaultValue `"rerun"`; `"hold"` under at-most-once
   */
  readonly onLapsed?: "rerun" | "hold" | Reconcile | undefined;
  /** How long `onLapsed` may take to find out. @defaultValue 10 000 */
  readonly reconcileTimeoutMs?: number | undefined;
  /** When the store does not answer a claim: refuse, or run unprotected and visibly so. @defaultValue `"reject"` */
  readonly onStoreDown?: "reject" | "run" | undefined;
  /** The longest that any one call waits for the store; at most a quarter of the lease. @defaultValue 2 000 */
  readonly storeTimeoutMs?: number | undefined;
  /** Which endings are kept and replayed. @defaultValue returned values; answers as `keepsStatus` says; no throws */
  readonly keep?: ((ending: Ending) => boolean) | undefined;
  /** Renewal of the lease ends here, so that work that never ends does not hold its key for ever. @defaultValue 900 000 */
  readonly maxRunMs?: number | undefined;
  /** Starts after which a key is refused. @defaultValue unlimited */
  readonly maxAttempts?: number | undefined;
  /** How long a completion that failed is tried again in the background. @defaultValue 3 600 000 */
  readonly completionRetryMs?: number | undefined;
  /** A larger result is given whole to its caller and kept as a tombstone. @defaultValue 1 MiB */
  readonly maxResultBytes?: number | undefined;
  /** An exactly-once transaction older than this is rolled back. @defaultValue 1 000 */
  readonly maxTransactionMs?: number | undefined;
  /** Under at-most-once: use a store that can lose what it acknowledged all the same. @defaultValue false */
  readonly acceptsLostWrites?: boolean | undefined;
  /** Keep the caller's key in clear beside its digest, for `list` and `find`. @defaultValue false */
  readonly keyLabels?: boolean | undefined;
}

export interface ResolvedPolicy {
  readonly guarantee: Guarantee;
  readonly leaseMs: number;
  readonly retentionMs: number;
  readonly onCompleted: "replay" | "reject";
  readonly waitMs: number;
  readonly onReleased: "takeover" | "refuse";
  readonly onLapse: OnLapse;
  readonly reconcile: Reconcile | undefined;
  readonly reconcileTimeoutMs: number;
  readonly onStoreDown: "reject" | "run";
  readonly storeTimeoutMs: number;
  readonly keep: (ending: Ending) => boolean;
  readonly maxRunMs: number;
  readonly maxAttempts: number | undefined;
  readonly completionRetryMs: number;
  readonly maxResultBytes: number;
  readonly maxTransactionMs: number;
  readonly keyLabels: boolean;
}

/** What of a store decides which policies it can serve. */
export interface StoreFacts {
  readonly name: string;
  readonly traits: StoreTraits;
  readonly transactions: boolean;
}

/** 401, 407, 408, 421, 425 and 429 speak of the caller or the moment, not of the work. */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([401, 407, 408, 421, 425, 429]);
/** Of these a client may assume that the work did not begin. */
const REFUSED_BEFORE_WORK: ReadonlySet<number> = new Set([401, 407, 421]);

/** The default rule for HTTP answers: what the same request would get again. */
export function keepsStatus(status: number): boolean {
  return status < 500 && !TRANSIENT_STATUSES.has(status);
}

/** Whether an answer that is not kept says by its status that nothing was done. */
export function refusedBeforeWork(status: number): boolean {
  return REFUSED_BEFORE_WORK.has(status);
}

function keepByDefault(ending: Ending): boolean {
  return ending.kind === "answered" ? keepsStatus(ending.status) : ending.kind === "returned";
}

const DEFAULT_WAIT_MS = 5_000;

const DURATIONS = {
  leaseMs: 30_000,
  retentionMs: 86_400_000,
  reconcileTimeoutMs: 10_000,
  storeTimeoutMs: 2_000,
  maxRunMs: 900_000,
  completionRetryMs: 3_600_000,
  maxTransactionMs: 1_000,
} as const;

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

/** Puts the layers over each other, most specific first. A member that is `undefined` is not set. */
export function layerPolicies(...layers: readonly (Policy | undefined)[]): Policy {
  const merged: Record<string, unknown> = {};
  for (const layer of layers) {
    if (layer === undefined) continue;
    for (const [name, value] of Object.entries(layer)) {
      if (value !== undefined && merged[name] === undefined) merged[name] = value;
    }
  }
  return merged;
}

/** Everything that is wrong with a policy, each with its name. */
export function policyProblems(policy: Policy, store: StoreFacts): string[] {
  return [...valueProblems(policy), ...pairProblems(policy), ...storeProblems(policy, store)];
}

/**
 * Resolves layers to one complete policy.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with every problem, or `GUARANTEE_UNSUPPORTED` never: what the
 * store cannot give is one of the problems.
 */
export function resolvePolicy(store: StoreFacts, ...layers: readonly (Policy | undefined)[]): ResolvedPolicy {
  const policy = layerPolicies(...layers);
  const problems = policyProblems(policy, store);
  if (problems.length > 0) throw configurationError("Policy", problems);
  return complete(policy);
}

function complete(policy: Policy): ResolvedPolicy {
  const guarantee = policy.guarantee ?? "at-least-once";
  const onCompleted = policy.onCompleted ?? "replay";
  const onInFlight = policy.onInFlight ?? (onCompleted === "reject" ? "reject" : {});
  const onLapsed = policy.onLapsed ?? (guarantee === "at-most-once" ? "hold" : "rerun");
  return {
    guarantee,
    onCompleted,
    waitMs: onInFlight === "reject" ? 0 : (onInFlight.waitMs ?? DEFAULT_WAIT_MS),
    onReleased: onInFlight === "reject" ? "refuse" : (onInFlight.onReleased ?? "takeover"),
    onLapse: onLapsed === "rerun" ? "takeover" : "hold",
    reconcile: typeof onLapsed === "function" ? onLapsed : undefined,
    onStoreDown: policy.onStoreDown ?? "reject",
    keep: policy.keep ?? keepByDefault,
    maxAttempts: policy.maxAttempts,
    maxResultBytes: policy.maxResultBytes ?? DEFAULT_LIMITS.maxResultBytes,
    keyLabels: policy.keyLabels ?? false,
    leaseMs: policy.leaseMs ?? DURATIONS.leaseMs,
    retentionMs: policy.retentionMs ?? DURATIONS.retentionMs,
    reconcileTimeoutMs: policy.reconcileTimeoutMs ?? DURATIONS.reconcileTimeoutMs,
    storeTimeoutMs: storeTimeout(policy),
    maxRunMs: policy.maxRunMs ?? DURATIONS.maxRunMs,
    completionRetryMs: policy.completionRetryMs ?? DURATIONS.completionRetryMs,
    maxTransactionMs: policy.maxTransactionMs ?? DURATIONS.maxTransactionMs,
  };
}

/** Unset, it shrinks with a short lease instead of making that lease illegal. */
function storeTimeout(policy: Policy): number {
  return (
    policy.storeTimeoutMs ?? Math.min(DURATIONS.storeTimeoutMs, (policy.leaseMs ?? DURATIONS.leaseMs) / 4)
  );
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
export function durationProblems(name: string, value: unknown, least = 1): string[] {
  const fits =
    typeof value === "number" && Number.isFinite(value) && value >= least && value <= MAX_DURATION_MS;
  return fits
    ? []
    : [`${name} must be a number of milliseconds from ${least} to ${MAX_DURATION_MS}, not ${shown(value)}`];
}

export function countProblems(name: string, value: unknown, least: number): string[] {
  if (value === undefined || (Number.isSafeInteger(value) && (value as number) >= least)) return [];
  return [`${name} must be a whole number of at least ${least}, not ${shown(value)}`];
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
  if (guarantee === "at-most-once" && policy.onStoreDown === "run") {
    problems.push('onStoreDown "run" contradicts guarantee "at-most-once": unprotected work may start twice');
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
export function resolveLimits(limits: Partial<Limits> | undefined): {
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
