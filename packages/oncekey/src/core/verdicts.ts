/**
 * @module
 * The part of the state machine that people and reconcilers drive: outcomes that are unknown, and what is said of them.
 *
 * Invariants: one reconciler at a time; a verdict is applied only to the very state it was given on; a live claim is
 * taken away only if that was asked for, and then its token stays behind as a bar.
 */
import { unreachable } from "./errors.js";
import { NO_FINGERPRINT } from "./fingerprint.js";
import { type ClaimToken, describeRecord, type StoredRecord, versionOf } from "./record.js";
import {
  type Change,
  type Current,
  completed,
  currentRecord,
  declaredUnknown,
  made,
  released,
  unknownSince,
} from "./record-changes.js";
import type {
  MarkUnknownOutcome,
  MarkUnknownRequest,
  ReconcileOutcome,
  ReconcileRequest,
  ResolveOutcome,
  ResolveRequest,
} from "./store.js";

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
  // What is done stays done, with its first outcome: it can be forgotten, and nothing else be said of it.
  const isOver = record.state === "completed" && request.verdict.kind !== "forgotten";
  if (isOver || versionOf(record) !== request.version) {
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
    case "forgotten":
      if (record.state === "completed") return done(bar(record, token, verdict.refuseForMs ?? 0, nowMs));
      return done(released(record, 0, undefined, nowMs));
    case "not-performed":
      // Work that may still be running could make the record again, so its token stays behind as a bar. Its
      // count is cleared: whoever says that nothing happened gives the key all its attempts back.
      return done(released(record, 0, undefined, nowMs));
    default:
      return unreachable(verdict);
  }
}

/** What stands in the place of a forgotten record while others may still replay it: a claim that is gone when its lease ends. */
function bar(
  record: StoredRecord,
  token: ClaimToken,
  leaseMs: number,
  nowMs: number,
): StoredRecord | undefined {
  if (leaseMs <= 0) return undefined;
  const identity = { ...record, token, leaseMs, retentionMs: 0, fingerprint: NO_FINGERPRINT };
  return made({ ...identity, onLapse: "takeover" }, 0, nowMs, undefined);
}

/** A resolve whose answer was lost finds its own token there. */
function alreadyApplied(record: StoredRecord, { token, verdict }: ResolveRequest): boolean {
  if (record.token !== token) return false;
  return verdict.kind === "completed"
    ? record.state === "completed"
    : (verdict.kind === "restart" || verdict.kind === "forgotten") && record.state === "claimed";
}

/** How long a claim of the work, or of a reconciler other than `token`, still holds. */
function liveFor(record: StoredRecord, token: ClaimToken, nowMs: number): number {
  if (record.state === "claimed") return record.leaseEndsAtMs - nowMs;
  const { reconciler } = record;
  return reconciler === undefined || reconciler.token === token ? 0 : reconciler.leaseEndsAtMs - nowMs;
}
