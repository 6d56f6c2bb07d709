/**
 * @module
 * Makes one complete policy of the layers.
 *
 * Invariant: every mistake is found here, all of them at once, and nothing is resolved that has one.
 */
import { configurationError, OncekeyError } from "./errors.js";
import { DEFAULT_LIMITS } from "./limits.js";
import {
  DURATIONS,
  type Ending,
  keepsStatus,
  layerPolicies,
  type Policy,
  type ResolvedPolicy,
  type StoreFacts,
  storeTimeout,
} from "./policy.js";
import { policyProblems } from "./policy-checks.js";

const DEFAULT_WAIT_MS = 5_000;

/** The last layer; what depends on other members is filled in by `complete`. */
const BUILT_IN = {
  guarantee: "at-least-once",
  onCompleted: "replay",
  onStoreDown: "reject",
  maxResultBytes: DEFAULT_LIMITS.maxResultBytes,
  keyLabels: false,
  keep: keepByDefault,
  ...DURATIONS,
} satisfies Policy;

/**
 * Resolves layers to one complete policy.
 *
 * @throws OncekeyError `GUARANTEE_UNSUPPORTED` if exactly-once is asked of a store without transactions, otherwise
 * `CONFIGURATION_INVALID`; with every problem.
 */
export function resolvePolicy(store: StoreFacts, ...layers: readonly (Policy | undefined)[]): ResolvedPolicy {
  const policy = layerPolicies(...layers);
  const problems = policyProblems(policy, store);
  if (problems.length === 0) return complete(policy);
  if (policy.guarantee !== "exactly-once" || store.transactions) throw configurationError("Policy", problems);
  const message = `The store ${store.name} has no transactions, so it cannot give exactly-once.`;
  throw new OncekeyError("GUARANTEE_UNSUPPORTED", message, { problems });
}

/** A policy under whose layers the built-in one lies. */
type Complete = Policy & { readonly [Name in keyof typeof BUILT_IN]: NonNullable<Policy[Name]> };

function complete(policy: Policy): ResolvedPolicy {
  const set = layerPolicies(policy, BUILT_IN) as Complete;
  const { guarantee, onCompleted } = set;
  const { onInFlight = onCompleted === "reject" ? "reject" : {} } = set;
  const { onLapsed = guarantee === "at-most-once" ? "hold" : "rerun" } = set;
  const waits = onInFlight !== "reject";
  return {
    ...set,
    waitMs: waits ? (onInFlight.waitMs ?? DEFAULT_WAIT_MS) : 0,
    onReleased: waits ? (onInFlight.onReleased ?? "takeover") : "refuse",
    onLapse: onLapsed === "rerun" ? "takeover" : "hold",
    reconcile: typeof onLapsed === "function" ? onLapsed : undefined,
    storeTimeoutMs: storeTimeout(policy),
    maxAttempts: set.maxAttempts,
  };
}

function keepByDefault(ending: Ending): boolean {
  return ending.kind === "answered" ? keepsStatus(ending.status) : ending.kind === "returned";
}
