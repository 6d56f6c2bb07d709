/**
 * @module
 * `oncekey/stores`: the state machine and the record, for authors of stores.
 *
 * A store in JavaScript applies these inside its own atomic step; one on a server restates them in its own language and lets
 * `storeContract` of `oncekey/testing` compare.
 */
export { compareFingerprints } from "../core/fingerprint.js";
export { MAX_PAGE } from "../core/limits.js";
export type { OnLapse, ReconcilerClaim, StoredRecord } from "../core/record.js";
export { describeRecord, versionOf } from "../core/record.js";
export type { Change } from "../core/transitions.js";
export {
  claimRecord,
  completeRecord,
  currentRecord,
  extendRecord,
  markUnknownRecord,
  reconcileRecord,
  releaseRecord,
  resolveRecord,
  statusOf,
} from "../core/transitions.js";
