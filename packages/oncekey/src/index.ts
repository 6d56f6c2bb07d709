/**
 * @module
 * oncekey: one key, one effect. This file re-exports what applications use; stores, frameworks and test tools have subpaths.
 */

export type { CloseReport } from "./core/assembly.js";
export type { Clock, EpochMs, Timer } from "./core/clock.js";
export { systemClock } from "./core/clock.js";
export type { ResultCodec } from "./core/codec.js";
export type { ErrorCode, ErrorDetails } from "./core/errors.js";
export { CODES, docsOf, isOncekeyError, notPerformed, OncekeyError, ReplayedError } from "./core/errors.js";
export type { CallOutcome, EventListener, IdempotencyEvent, StoreCall } from "./core/events.js";
export type { Fingerprint } from "./core/fingerprint.js";
export type { FunctionOptions, RunOutcome } from "./core/function-results.js";
export type { DefaultScope, Idempotency, IdempotencyOptions } from "./core/idempotency.js";
export { createIdempotency } from "./core/idempotency.js";
export type { GlobalScope, KeyInput, KeyPart, Missing, ScopeValue } from "./core/key.js";
export { GLOBAL_SCOPE } from "./core/key.js";
export type { LimitOptions, Limits } from "./core/limits.js";
export { DEFAULT_LIMITS } from "./core/limits.js";
export type { ListOptions, OperatorNote, OperatorVerdict, RecordTarget } from "./core/operator-input.js";
export type { OperatorOutcome, ReconcileReport } from "./core/operators.js";
export type { Ending, OnInFlight, Policy, Reconcile, Reconciliation, UnknownRecord } from "./core/policy.js";
export { keepsStatus } from "./core/policy.js";
export type {
  ClaimToken,
  Guarantee,
  OnLapse,
  ReconcilerClaim,
  RecordInfo,
  RecordKey,
  RecordState,
  RecordVersion,
  ScopeId,
  StoredOutcome,
  StoredRecord,
} from "./core/record.js";
export type { RunOptions } from "./core/run.js";
export type * from "./core/store.js";
export type { JoinedOptions, Within } from "./core/within.js";
export type { GuaranteeOf, StepWork, TransactionOf, Work } from "./core/work.js";
