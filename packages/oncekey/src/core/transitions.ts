/**
 * @module
 * The state machine: what each call does to a record, as pure functions of record, request and time.
 *
 * Invariants: the fingerprint is compared before the state; nothing changes a record without its token, or
 * an operator's version; a former holder changes nothing and is told so; a completed record keeps its first outcome.
 *
 * A store in JavaScript applies these inside its own atomic step. `Change.record` is the record afterwards:
 * the same object if nothing changed, `undefined` if there is none. Storing it is left to the store.
 */
import { unreachable } from "./errors.js";
import { compareFingerprints } from "./fingerprint.js";
import { type ClaimToken, type StoredRecord, versionOf } from "./record.js";
import {
  type Change,
  type Current,
  completed,
  currentRecord,
  made,
  outcomeOf,
  released,
  renewed,
  unknownSince,
} from "./record-changes.js";
import type {
  ClaimOutcome,
  ClaimRequest,
  CompleteOutcome,
  CompleteRequest,
  ExtendOutcome,
  ExtendRequest,
  KeyStatus,
  ReleaseOutcome,
  ReleaseRequest,
} from "./store.js";

export { type Change, currentRecord } from "./record-changes.js";
export { markUnknownRecord, reconcileRecord, resolveRecord } from "./verdicts.js";

/** `claim` of the port. */
export function claimRecord(stored: Current, request: ClaimRequest, nowMs: number): Change<ClaimOutcome> {
  const record = currentRecord(stored, nowMs);
  if (record === undefined) return start(record, request, 0, nowMs, false, true);
  if (record.state === "released") {
    const allowed = request.maxAttempts === undefined || record.attempt < request.maxAttempts;
    return allowed ? start(record, request, record.attempt, nowMs, false, true) : exhausted(record);
  }
  const comparison = compareFingerprints(record.fingerprint, request.fingerprint);
  if (comparison === "different") return { outcome: { kind: "mismatch", state: record.state }, record };
  const compared = comparison === "same";
  switch (record.state) {
    case "claimed":
      return claimClaimed(record, request, nowMs, compared);
    case "unknown":
      return claimUnknown(record, nowMs, compared);
    case "completed":
      return {
        outcome: { kind: "completed", outcome: outcomeOf(record), completedBy: record.token, compared },
        record,
      };
    default:
      return unreachable(record.state);
  }
}

function claimClaimed(
  record: StoredRecord,
  request: ClaimRequest,
  nowMs: number,
  compared: boolean,
): Change<ClaimOutcome> {
  if (record.token === request.token) {
    // The answer to this very claim was lost: the same attempt goes on, its lease counts from now.
    return {
      outcome: { kind: "claimed", attempt: record.attempt, takeover: false, compared },
      record: renewed(record, request.leaseMs, nowMs),
    };
  }
  const remainingMs = record.leaseEndsAtMs - nowMs;
  if (remainingMs > 0) {
    return { outcome: { kind: "in-flight", holder: record.token, remainingMs, compared }, record };
  }
  // The stricter of the record's rule and the caller's decides what a lapse means.
  if (record.onLapse === "hold" || request.onLapse === "hold") {
    return claimUnknown(unknownSince(record, undefined, nowMs), nowMs, compared);
  }
  if (request.maxAttempts !== undefined && record.attempt >= request.maxAttempts) return exhausted(record);
  return start(record, request, record.attempt, nowMs, true, compared);
}

function claimUnknown(record: StoredRecord, nowMs: number, compared: boolean): Change<ClaimOutcome> {
  const { reconciler, token: madeBy, attempt } = record;
  if (reconciler !== undefined && nowMs < reconciler.leaseEndsAtMs) {
    const remainingMs = reconciler.leaseEndsAtMs - nowMs;
    return { outcome: { kind: "in-flight", holder: reconciler.token, remainingMs, compared }, record };
  }
  const lapsedForMs = nowMs - record.leaseEndsAtMs;
  return {
    outcome: { kind: "unknown", madeBy, version: versionOf(record), attempt, lapsedForMs, compared },
    record,
  };
}

function start(
  record: Current,
  request: ClaimRequest,
  attempts: number,
  nowMs: number,
  takeover: boolean,
  compared: boolean,
): Change<ClaimOutcome> {
  const attempt = attempts + 1;
  return {
    outcome: { kind: "claimed", attempt, takeover, compared },
    record: made(request, attempt, nowMs, record?.lastCode),
  };
}

function exhausted(record: StoredRecord): Change<ClaimOutcome> {
  return { outcome: { kind: "exhausted", attempts: record.attempt, lastCode: record.lastCode }, record };
}

/** `extend` of the port. */
export function extendRecord(stored: Current, request: ExtendRequest, nowMs: number): Change<ExtendOutcome> {
  const record = currentRecord(stored, nowMs);
  if (record === undefined) return { outcome: { kind: "gone" }, record: stored };
  const mine = record.token === request.token;
  switch (record.state) {
    case "claimed":
      if (!mine) return { outcome: { kind: "replaced" }, record };
      return { outcome: { kind: "extended" }, record: renewed(record, request.leaseMs, nowMs) };
    case "unknown":
      return { outcome: { kind: mine ? "unknown" : "replaced" }, record };
    case "completed":
      return { outcome: { kind: mine ? "completed" : "replaced" }, record };
    case "released":
      // A released record with my token was taken from me by an operator: I may not make it again.
      return { outcome: { kind: mine ? "replaced" : "gone" }, record };
    default:
      return unreachable(record.state);
  }
}

/** `complete` of the port. */
export function completeRecord(
  stored: Current,
  request: CompleteRequest,
  nowMs: number,
): Change<CompleteOutcome> {
  const record = currentRecord(stored, nowMs);
  if (record === undefined) {
    const again = made(request, request.attempt, nowMs, undefined);
    return { outcome: { kind: "completed", how: "recreated" }, record: completed(again, request, nowMs) };
  }
  if (record.token !== request.token || record.state === "released") {
    const by = record.state === "completed" ? { token: record.token, outcome: outcomeOf(record) } : undefined;
    return { outcome: { kind: "replaced", by }, record };
  }
  switch (record.state) {
    case "claimed":
      return { outcome: { kind: "completed", how: "stored" }, record: completed(record, request, nowMs) };
    case "unknown":
      return { outcome: { kind: "completed", how: "late" }, record: completed(record, request, nowMs) };
    case "completed":
      return { outcome: { kind: "completed", how: "already" }, record };
    default:
      return unreachable(record.state);
  }
}

/** `release` of the port. */
export function releaseRecord(
  stored: Current,
  request: ReleaseRequest,
  nowMs: number,
): Change<ReleaseOutcome> {
  const record = currentRecord(stored, nowMs);
  if (record === undefined || record.token !== request.token || record.state === "released") {
    return { outcome: { kind: "not-held" }, record: stored };
  }
  if (record.state === "completed") return { outcome: { kind: "completed" }, record };
  return { outcome: { kind: "released" }, record: afterRelease(record, request, nowMs) };
}

function afterRelease(
  record: StoredRecord,
  { started, keepAttempts, code }: ReleaseRequest,
  nowMs: number,
): Current {
  if (started) return keepAttempts ? released(record, record.attempt, code, nowMs) : undefined;
  const attempt = record.attempt - 1;
  if (attempt === 0) return undefined;
  if (keepAttempts) return released(record, attempt, record.lastCode, nowMs);
  // It had taken over a lapsed claim and never started: the earlier start, whose end is unknown, stays on
  // record. Under nobody's token, or the same release asked again would take that start back as well.
  const givenBack = { ...record, token: `${record.token}~` as ClaimToken, attempt, changedAtMs: nowMs };
  if (record.state === "unknown") return { ...givenBack, reconciler: undefined };
  return { ...givenBack, leaseEndsAtMs: nowMs, expiresAtMs: nowMs + record.retentionMs };
}

/** `status` of the port, for one key. */
export function statusOf(stored: Current, nowMs: number): KeyStatus {
  const record = currentRecord(stored, nowMs);
  if (record === undefined) return { state: "absent", holder: undefined };
  const { state, reconciler, token } = record;
  if (state === "claimed")
    return { state: nowMs < record.leaseEndsAtMs ? "claimed" : "lapsed", holder: token };
  if (state === "unknown" && reconciler !== undefined && nowMs < reconciler.leaseEndsAtMs) {
    return { state: "claimed", holder: reconciler.token };
  }
  return { state, holder: token };
}
