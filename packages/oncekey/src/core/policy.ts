/**
 * @module
 * What a caller may choose, the defaults, and how the layers meet: call or route, then instance, then preset,
 * then built-in.
 *
 * Invariants: a property that is `undefined` is not set; an explicit value equal to a default still wins;
 * a resolved policy is complete and without contradictions, which `policy-resolution.ts` sees to. Choices that only HTTP has
 * (keys, scopes, fingerprints of requests) are left to `http/options.ts`.
 */
import { dropped, isPromise } from "./promises.js";
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
 * - `done`: it happened; `result` is what repeats get: what the function would have returned or, over HTTP,
 *   `{ status, headers, body }` (`HttpResult` of `oncekey/http`; no `Response`, whose body has yet to be read). Without
 *   `result` the record becomes a tombstone. A result of a wrong form leaves the outcome unknown, and the event
 *   `reconciled` has the cause.
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

/**
 * The answer of a rule that the application gave.
 *
 * @throws TypeError if it is a promise, which would always mean yes, and whose failure nobody would hear of.
 */
export function saidAtOnce<T>(answer: T): T {
  if (!isPromise(answer)) return answer;
  dropped(answer);
  throw new TypeError("A rule has to answer at once; it must not be async");
}

/** What each duration is where nobody says otherwise, in milliseconds. */
export const DURATIONS = {
  leaseMs: 30_000,
  retentionMs: 86_400_000,
  reconcileTimeoutMs: 10_000,
  storeTimeoutMs: 2_000,
  maxRunMs: 900_000,
  completionRetryMs: 3_600_000,
  maxTransactionMs: 1_000,
} as const;

/** The options that are policy, for telling them from others and from misspellings. */
export const POLICY_NAMES: ReadonlySet<string> = new Set([
  "guarantee",
  "leaseMs",
  "retentionMs",
  "onCompleted",
  "onInFlight",
  "onLapsed",
  "reconcileTimeoutMs",
  "onStoreDown",
  "storeTimeoutMs",
  "keep",
  "maxRunMs",
  "maxAttempts",
  "completionRetryMs",
  "maxResultBytes",
  "maxTransactionMs",
  "acceptsLostWrites",
  "keyLabels",
] satisfies (keyof Policy)[]);

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

/** Unset, it shrinks with a short lease instead of making that lease illegal. */
export function storeTimeout(policy: Policy): number {
  return (
    policy.storeTimeoutMs ?? Math.min(DURATIONS.storeTimeoutMs, (policy.leaseMs ?? DURATIONS.leaseMs) / 4)
  );
}
