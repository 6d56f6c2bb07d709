/**
 * @module
 * What a store keeps for one key, and the names of its parts.
 *
 * Invariant: a record is changed only through the transitions of `transitions.ts`, and only by whoever
 * presents its token (the work), its reconciler token (a reconciler) or its version (an operator).
 * How records are laid out on disk or on the wire is left to each store.
 */
import type { Fingerprint } from "./fingerprint.js";

declare const brand: unique symbol;
type Branded<T, Name extends string> = T & { readonly [brand]: Name };

/** Digest of version, namespace, scope, operation and key: the only name under which a store knows a key. */
export type RecordKey = Branded<string, "RecordKey">;
/** Digest of a scope, so that records can be listed and limited per caller without keeping who it is. */
export type ScopeId = Branded<string, "ScopeId">;
/** Proof of one claim, minted by whoever claims, unique for ever. */
export type ClaimToken = Branded<string, "ClaimToken">;
/** Names one state of one record; an operator's change is applied only if the record still has it. */
export type RecordVersion = Branded<string, "RecordVersion">;

/**
 * How much a caller is promised.
 *
 * - `"at-least-once"`: repeats are suppressed while the record is kept; a failed or crashed attempt may run again.
 * - `"at-most-once"`: never started twice; what is not known to be done or not done is *unknown*.
 * - `"exactly-once"`: the rows written through `transaction` and the completion commit together.
 */
export type Guarantee = "at-least-once" | "at-most-once" | "exactly-once";

/**
 * A result as stored: a short text that describes it and its bytes.
 *
 * `body: undefined` is a *tombstone*: the work is completed, its body was not retained. The head of a
 * tombstone is still there (an HTTP status and `Location`, say). An empty body is a body.
 */
export interface StoredOutcome {
  readonly head: string;
  readonly body: Uint8Array | undefined;
}

/**
 * - `claimed`: somebody runs it, or did until its lease lapsed.
 * - `unknown`: started, and nobody knows how it ended (at-most-once, or `onLapsed` other than `"rerun"`).
 * - `completed`: done; answers repeats until its retention ends.
 * - `released`: not done; kept only to count attempts (`maxAttempts`), or to tell a former holder that an
 *   operator took its claim away.
 */
export type RecordState = "claimed" | "unknown" | "completed" | "released";

/** What a lapse means for this record: somebody else may start the work, or nobody may until its end is known. */
export type OnLapse = "takeover" | "hold";

/** The reconciler that is finding out how an unknown record ended. One at a time. */
export interface ReconcilerClaim {
  readonly token: ClaimToken;
  readonly leaseEndsAtMs: number;
}

/**
 * One record, in milliseconds of the store's own clock.
 *
 * A lapse is a fact about time, not a deletion: a claimed record stays whole until `expiresAtMs` =
 * lease end + retention. An unknown record has no end (`Infinity`).
 */
export interface StoredRecord {
  readonly key: RecordKey;
  readonly scopeId: ScopeId;
  /** Readable name of the operation, such as `POST /payments`. */
  readonly operation: string;
  /** The caller's key in clear, only where the policy asks for it (`keyLabels`). */
  readonly label: string | undefined;
  readonly state: RecordState;
  /** The claim that holds, made unknown, completed or last released this record. */
  readonly token: ClaimToken;
  readonly attempt: number;
  readonly fingerprint: Fingerprint;
  readonly guarantee: Guarantee;
  readonly onLapse: OnLapse;
  readonly leaseMs: number;
  readonly retentionMs: number;
  readonly claimedAtMs: number;
  /** When it reached its present state. */
  readonly changedAtMs: number;
  readonly leaseEndsAtMs: number;
  readonly expiresAtMs: number;
  readonly outcome: StoredOutcome | undefined;
  /** Why the last attempt failed, as a code; never a message. */
  readonly lastCode: string | undefined;
  readonly reconciler: ReconcilerClaim | undefined;
}

/** A record as an operator sees it: durations instead of instants, sizes instead of bodies. */
export interface RecordInfo {
  readonly key: RecordKey;
  readonly version: RecordVersion;
  readonly scopeId: ScopeId;
  readonly operation: string;
  readonly label: string | undefined;
  readonly state: RecordState;
  /** The claim that holds, made unknown, completed or last released it. */
  readonly holder: ClaimToken;
  readonly onLapse: OnLapse;
  /** `claimed` and its lease has ended: whoever comes next takes over or is told that the outcome is unknown. */
  readonly lapsed: boolean;
  readonly reconciling: boolean;
  readonly tombstone: boolean;
  readonly attempt: number;
  readonly guarantee: Guarantee;
  readonly fingerprint: Fingerprint;
  readonly lastCode: string | undefined;
  readonly resultBytes: number;
  /** Time since the present attempt was claimed. */
  readonly ageMs: number;
  /** Time in the present state. */
  readonly inStateMs: number;
  /** Of the claim, also of one whose outcome is unknown: negative once lapsed. 0 in states without a claim. */
  readonly leaseRemainingMs: number;
  /** `undefined`: never (unknown records wait for somebody's word). */
  readonly expiresInMs: number | undefined;
}

/** Names the state of a record. Renewing a lease does not change it; every other change does. */
export function versionOf(record: StoredRecord): RecordVersion {
  return `${record.state}.${record.attempt}.${record.token}.${record.reconciler?.token ?? ""}` as RecordVersion;
}

/** Shows a record to an operator, as of `nowMs` of the store's clock. */
export function describeRecord(record: StoredRecord, nowMs: number): RecordInfo {
  const { key, scopeId, operation, label, state, attempt, guarantee, fingerprint, lastCode, outcome } =
    record;
  const claimed = state === "claimed";
  return {
    key,
    version: versionOf(record),
    scopeId,
    operation,
    label,
    state,
    holder: record.token,
    onLapse: record.onLapse,
    lapsed: claimed && nowMs >= record.leaseEndsAtMs,
    reconciling: record.reconciler !== undefined && nowMs < record.reconciler.leaseEndsAtMs,
    tombstone: state === "completed" && outcome?.body === undefined,
    attempt,
    guarantee,
    fingerprint,
    lastCode,
    resultBytes: outcome?.body?.byteLength ?? 0,
    ageMs: nowMs - record.claimedAtMs,
    inStateMs: nowMs - record.changedAtMs,
    leaseRemainingMs: claimed || state === "unknown" ? record.leaseEndsAtMs - nowMs : 0,
    expiresInMs: record.expiresAtMs === Number.POSITIVE_INFINITY ? undefined : record.expiresAtMs - nowMs,
  };
}
