/**
 * @module
 * Makes one complete policy of the layers.
 *
 * Invariant: every mistake is found here, all of them at once, and nothing is resolved that has one.
 */
import { configurationError } from "./errors.js";
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

/**
 * Resolves layers to one complete policy.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with every problem;
 * a guarantee that the store cannot give is one.
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

function keepByDefault(ending: Ending): boolean {
  return ending.kind === "answered" ? keepsStatus(ending.status) : ending.kind === "returned";
}
