/**
 * @module
 * The states of a record, each made from the one before.
 *
 * Invariant: these are the only places where a record is made, so what belongs together (a state, its instants, its end)
 * changes together. Whether a change is allowed is left to `transitions.ts` and `verdicts.ts`.
 */

import type { Fingerprint } from "./fingerprint.js";
import type { ClaimToken, StoredOutcome, StoredRecord } from "./record.js";
import type { ClaimIdentity } from "./store.js";

/** What a call answers, and the record after it. */
export interface Change<Outcome> {
  readonly outcome: Outcome;
  readonly record: StoredRecord | undefined;
}

export type Current = StoredRecord | undefined;

const NEVER = Number.POSITIVE_INFINITY;

/** The record as of now: one that has expired is none, whether or not it has been purged. */
export function currentRecord(record: Current, nowMs: number): Current {
  return record !== undefined && nowMs < record.expiresAtMs ? record : undefined;
}

export function made(
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

export function renewed(record: StoredRecord, leaseMs: number, nowMs: number): StoredRecord {
  return {
    ...record,
    leaseMs,
    leaseEndsAtMs: nowMs + leaseMs,
    expiresAtMs: nowMs + leaseMs + record.retentionMs,
  };
}

export function completed(
  record: StoredRecord,
  { outcome, retentionMs }: { readonly outcome: StoredOutcome; readonly retentionMs: number },
  nowMs: number,
): StoredRecord {
  // Member by member, as it happens in every request: a spread takes twice as long (measured).
  return {
    key: record.key,
    scopeId: record.scopeId,
    operation: record.operation,
    label: record.label,
    state: "completed",
    token: record.token,
    attempt: record.attempt,
    fingerprint: record.fingerprint,
    guarantee: record.guarantee,
    onLapse: record.onLapse,
    leaseMs: record.leaseMs,
    retentionMs,
    claimedAtMs: record.claimedAtMs,
    changedAtMs: nowMs,
    leaseEndsAtMs: record.leaseEndsAtMs,
    expiresAtMs: nowMs + retentionMs,
    outcome,
    lastCode: record.lastCode,
    reconciler: undefined,
  };
}

export function unknownSince(record: StoredRecord, code: string | undefined, nowMs: number): StoredRecord {
  const lastCode = code ?? record.lastCode;
  return { ...record, state: "unknown", changedAtMs: nowMs, expiresAtMs: NEVER, lastCode };
}

/**
 * The work has ended and says so, so nobody has to wait for a holder that may only be slow: it counts as
 * lapsed for one lease already.
 */
export function declaredUnknown(record: StoredRecord, code: string | undefined, nowMs: number): StoredRecord {
  return { ...unknownSince(record, code, nowMs), leaseEndsAtMs: nowMs - record.leaseMs };
}

export function released(
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

export function outcomeOf(record: StoredRecord): StoredOutcome {
  // Written by `completed` alone; a completed record without one was damaged, and reading it says so earlier.
  return record.outcome ?? { head: "", body: undefined };
}
