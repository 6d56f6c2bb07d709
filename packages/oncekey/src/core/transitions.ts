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
import { compareFingerprints, type Fingerprint } from "./fingerprint.js";
import {
  type ClaimToken,
  describeRecord,
  type StoredOutcome,
  type StoredRecord,
  versionOf,
} from "./record.js";
import type {
  ClaimIdentity,
  ClaimOutcome,
  ClaimRequest,
  CompleteOutcome,
  CompleteRequest,
  ExtendOutcome,
  ExtendRequest,
  KeyStatus,
  MarkUnknownOutcome,
  MarkUnknownRequest,
  ReconcileOutcome,
  ReconcileRequest,
  ReleaseOutcome,
  ReleaseRequest,
  ResolveOutcome,
  ResolveRequest,
} from "./store.js";

/** What a call answers, and the record after it. */
export interface Change<Outcome> {
  readonly outcome: Outcome;
  readonly record: StoredRecord | undefined;
}

type Current = StoredRecord | undefined;

const NEVER = Number.POSITIVE_INFINITY;

/** The record as of now: one that has expired is none, whether or not it has been purged. */
export function currentRecord(record: Current, nowMs: number): Current {
  return record !== undefined && nowMs < record.expiresAtMs ? record : undefined;
}

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
  // It had taken over a lapsed claim and never started: the earlier start, whose end is unknown, stays on record.
  return {
    ...record,
    attempt,
    changedAtMs: nowMs,
    leaseEndsAtMs: nowMs,
    expiresAtMs: nowMs + record.retentionMs,
  };
}

/** `markUnknown` of the port. */
export function markUnknownRecord(
  stored: Current,
  request: MarkUnknownRequest,
  nowMs: number,
): Change<MarkUnknownOutcome> {
  const record = currentRecord(stored, nowMs);
  if (record === undefined) {
    const again = made(request, request.attempt, nowMs, undefined);
    return { outcome: { kind: "unknown" }, record: declaredUnknown(again, request.code, nowMs) };
  }
  if (record.token !== request.token || record.state === "released")
    return { outcome: { kind: "replaced" }, record };
  if (record.state === "completed") return { outcome: { kind: "completed" }, record };
  if (record.state === "unknown") return { outcome: { kind: "unknown" }, record };
  return { outcome: { kind: "unknown" }, record: declaredUnknown(record, request.code, nowMs) };
}

/** `reconcile` of the port. */
export function reconcileRecord(
  stored: Current,
  request: ReconcileRequest,
  nowMs: number,
): Change<ReconcileOutcome> {
  const record = currentRecord(stored, nowMs);
  if (record?.state !== "unknown" || record.token !== request.madeBy)
    return { outcome: { kind: "changed" }, record };
  const { reconciler } = record;
  if (reconciler !== undefined && reconciler.token !== request.token && nowMs < reconciler.leaseEndsAtMs) {
    const remainingMs = reconciler.leaseEndsAtMs - nowMs;
    return { outcome: { kind: "in-flight", holder: reconciler.token, remainingMs }, record };
  }
  const next = { ...record, reconciler: { token: request.token, leaseEndsAtMs: nowMs + request.leaseMs } };
  return { outcome: { kind: "reconciling", record: describeRecord(next, nowMs) }, record: next };
}

/** `resolve` of the port. */
export function resolveRecord(
  stored: Current,
  request: ResolveRequest,
  nowMs: number,
): Change<ResolveOutcome> {
  const record = currentRecord(stored, nowMs);
  if (record === undefined) return { outcome: { kind: "absent" }, record: stored };
  if (alreadyApplied(record, request))
    return { outcome: { kind: "resolved", attempt: record.attempt }, record };
  if (versionOf(record) !== request.version) {
    return { outcome: { kind: "changed", record: describeRecord(record, nowMs) }, record };
  }
  const remainingMs = liveFor(record, request.token, nowMs);
  if (remainingMs > 0 && !request.evenIfLive) return { outcome: { kind: "live", remainingMs }, record };
  return applyVerdict(record, request, nowMs);
}

function applyVerdict(record: StoredRecord, request: ResolveRequest, nowMs: number): Change<ResolveOutcome> {
  const { verdict, token } = request;
  const done = (next: StoredRecord | undefined, attempt = record.attempt): Change<ResolveOutcome> => ({
    outcome: { kind: "resolved", attempt },
    record: next,
  });
  switch (verdict.kind) {
    case "completed": {
      const retentionMs = verdict.retentionMs ?? record.retentionMs;
      return done(
        completed({ ...record, token, retentionMs }, { outcome: verdict.outcome, retentionMs }, nowMs),
      );
    }
    case "restart": {
      const { leaseMs, maxAttempts } = verdict;
      if (maxAttempts !== undefined && record.attempt >= maxAttempts) {
        return { outcome: { kind: "exhausted", attempts: record.attempt }, record };
      }
      const attempt = record.attempt + 1;
      return done(made({ ...record, token, leaseMs }, attempt, nowMs, record.lastCode), attempt);
    }
    case "unknown":
      return done(
        record.state === "claimed"
          ? unknownSince(record, undefined, nowMs)
          : { ...record, reconciler: undefined },
      );
    case "not-performed":
    case "forgotten":
      // Work that may still be running could make the record again, so its token stays behind as a bar. Its
      // count is cleared: whoever says that nothing happened gives the key all its attempts back.
      return done(record.state === "completed" ? undefined : released(record, 0, undefined, nowMs));
    default:
      return unreachable(verdict);
  }
}

/** A resolve whose answer was lost finds its own token there. */
function alreadyApplied(record: StoredRecord, { token, verdict }: ResolveRequest): boolean {
  if (record.token !== token) return false;
  return verdict.kind === "completed"
    ? record.state === "completed"
    : verdict.kind === "restart" && record.state === "claimed";
}

/** How long a claim of the work, or of a reconciler other than `token`, still holds. */
function liveFor(record: StoredRecord, token: ClaimToken, nowMs: number): number {
  if (record.state === "claimed") return record.leaseEndsAtMs - nowMs;
  const { reconciler } = record;
  return reconciler === undefined || reconciler.token === token ? 0 : reconciler.leaseEndsAtMs - nowMs;
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

function made(
  identity: Omit<ClaimIdentity, "token"> & { readonly token: ClaimToken; readonly fingerprint: Fingerprint },
  attempt: number,
  nowMs: number,
  lastCode: string | undefined,
): StoredRecord {
  const { leaseMs, retentionMs } = identity;
  return {
    key: identity.key,
    scopeId: identity.scopeId,
    operation: identity.operation,
    label: identity.label,
    state: "claimed",
    token: identity.token,
    attempt,
    fingerprint: identity.fingerprint,
    guarantee: identity.guarantee,
    onLapse: identity.onLapse,
    leaseMs,
    retentionMs,
    claimedAtMs: nowMs,
    changedAtMs: nowMs,
    leaseEndsAtMs: nowMs + leaseMs,
    expiresAtMs: nowMs + leaseMs + retentionMs,
    outcome: undefined,
    lastCode,
    reconciler: undefined,
  };
}

function renewed(record: StoredRecord, leaseMs: number, nowMs: number): StoredRecord {
  return {
    ...record,
    leaseMs,
    leaseEndsAtMs: nowMs + leaseMs,
    expiresAtMs: nowMs + leaseMs + record.retentionMs,
  };
}

function completed(
  record: StoredRecord,
  { outcome, retentionMs }: { readonly outcome: StoredOutcome; readonly retentionMs: number },
  nowMs: number,
): StoredRecord {
  const expiresAtMs = nowMs + retentionMs;
  return {
    ...record,
    state: "completed",
    outcome,
    retentionMs,
    changedAtMs: nowMs,
    expiresAtMs,
    reconciler: undefined,
  };
}

function unknownSince(record: StoredRecord, code: string | undefined, nowMs: number): StoredRecord {
  const lastCode = code ?? record.lastCode;
  return { ...record, state: "unknown", changedAtMs: nowMs, expiresAtMs: NEVER, lastCode };
}

/**
 * The work has ended and says so, so nobody has to wait for a holder that may only be slow: it counts as
 * lapsed for one lease already.
 */
function declaredUnknown(record: StoredRecord, code: string | undefined, nowMs: number): StoredRecord {
  return { ...unknownSince(record, code, nowMs), leaseEndsAtMs: nowMs - record.leaseMs };
}

function released(
  record: StoredRecord,
  attempt: number,
  code: string | undefined,
  nowMs: number,
): StoredRecord {
  const expiresAtMs = nowMs + record.retentionMs;
  return {
    ...record,
    state: "released",
    attempt,
    lastCode: code,
    changedAtMs: nowMs,
    expiresAtMs,
    reconciler: undefined,
  };
}

function outcomeOf(record: StoredRecord): StoredOutcome {
  // Written by `completed` alone; a completed record without one was damaged, and reading it says so earlier.
  return record.outcome ?? { head: "", body: undefined };
}
