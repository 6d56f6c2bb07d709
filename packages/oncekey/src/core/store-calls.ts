/**
 * @module
 * What is asked of a store about one key, and what it answers: the requests and outcomes of the port in `store.ts`.
 *
 * Invariants: a request is plain data that a store may keep, send or put aside; an outcome is a union told apart by `kind`,
 * and says everything that its caller has to decide on without asking again.
 */
import type { Fingerprint } from "./fingerprint.js";
import type {
  ClaimToken,
  Guarantee,
  OnLapse,
  RecordInfo,
  RecordKey,
  RecordState,
  RecordVersion,
  ScopeId,
  StoredOutcome,
} from "./record.js";

/** Who is asking, for what: the same through all calls of one attempt, so that a lost record can be made again. */
export interface ClaimIdentity {
  readonly key: RecordKey;
  readonly scopeId: ScopeId;
  readonly operation: string;
  readonly label: string | undefined;
  readonly token: ClaimToken;
  readonly fingerprint: Fingerprint;
  readonly guarantee: Guarantee;
  readonly onLapse: OnLapse;
  readonly leaseMs: number;
  readonly retentionMs: number;
}

export interface ClaimRequest extends ClaimIdentity {
  /** Starts allowed while the counter lives; `undefined`: any number. */
  readonly maxAttempts: number | undefined;
}

/**
 * `compared: false` says that the two fingerprints were made by different rules, so that nobody can tell
 * whether they mean the same request.
 */
export type ClaimOutcome =
  | {
      readonly kind: "claimed";
      readonly attempt: number;
      readonly takeover: boolean;
      readonly compared: boolean;
    }
  | {
      readonly kind: "in-flight";
      /** Who holds it: the work, or the reconciler of an unknown record. */
      readonly holder: ClaimToken;
      readonly remainingMs: number;
      readonly compared: boolean;
    }
  | {
      readonly kind: "completed";
      readonly outcome: StoredOutcome;
      readonly completedBy: ClaimToken;
      readonly compared: boolean;
    }
  | {
      readonly kind: "unknown";
      readonly madeBy: ClaimToken;
      readonly version: RecordVersion;
      readonly attempt: number;
      /** Time since its lease lapsed; at least its lease if the work itself said that it has ended. */
      readonly lapsedForMs: number;
      readonly compared: boolean;
    }
  | { readonly kind: "mismatch"; readonly state: RecordState }
  | { readonly kind: "exhausted"; readonly attempts: number; readonly lastCode: string | undefined }
  | { readonly kind: "full"; readonly limit: "records" | "scope" };

export interface ExtendRequest {
  readonly key: RecordKey;
  readonly token: ClaimToken;
  readonly leaseMs: number;
}

/** `gone`: there is no record; claim again with the same token. `replaced`: another token holds or ended it. */
export type ExtendOutcome =
  | { readonly kind: "extended" }
  | { readonly kind: "gone" }
  | { readonly kind: "replaced" }
  | { readonly kind: "unknown" }
  | { readonly kind: "completed" };

export interface CompleteRequest extends ClaimIdentity {
  readonly attempt: number;
  readonly outcome: StoredOutcome;
}

/**
 * `how`: `"stored"` = this call stored it; `"already"` = this token had completed it before, the first
 * result stays; `"recreated"` = the record was gone and has been made again; `"late"` = it had been declared unknown.
 */
export type CompleteOutcome =
  | { readonly kind: "completed"; readonly how: "stored" | "already" | "recreated" | "late" }
  | {
      readonly kind: "replaced";
      /** What the other token completed it with; `undefined` while that one still runs. */
      readonly by: { readonly token: ClaimToken; readonly outcome: StoredOutcome } | undefined;
    }
  | { readonly kind: "full" };

export interface ReleaseRequest {
  readonly key: RecordKey;
  readonly token: ClaimToken;
  /** `false`: the work was never started, so this claim does not count as an attempt. */
  readonly started: boolean;
  /** Keep the number of attempts (`maxAttempts` is set); otherwise nothing is left. */
  readonly keepAttempts: boolean;
  readonly code: string | undefined;
}

/** `not-held`: there is nothing of this token to release, which is also what a repeated release finds. */
export type ReleaseOutcome =
  | { readonly kind: "released" }
  | { readonly kind: "not-held" }
  | { readonly kind: "completed" };

export interface MarkUnknownRequest extends ClaimIdentity {
  readonly attempt: number;
  readonly code: string | undefined;
}

export type MarkUnknownOutcome =
  | { readonly kind: "unknown" }
  | { readonly kind: "completed" }
  | { readonly kind: "replaced" };

export interface ReconcileRequest {
  readonly key: RecordKey;
  /** The claim whose end is unknown. */
  readonly madeBy: ClaimToken;
  /** The reconciler's own token; asked again with it, its lease is renewed. */
  readonly token: ClaimToken;
  readonly leaseMs: number;
}

/** `changed`: it is not unknown any more, or not by that claim; claim again to see. */
export type ReconcileOutcome =
  | { readonly kind: "reconciling"; readonly record: RecordInfo }
  | { readonly kind: "in-flight"; readonly holder: ClaimToken; readonly remainingMs: number }
  | { readonly kind: "changed" };

/** What a reconciler or an operator says of a record. */
export type Verdict =
  | { readonly kind: "completed"; readonly outcome: StoredOutcome; readonly retentionMs: number | undefined }
  /** Nothing happened, and whoever says so starts the work now, under `token` of the request. */
  | { readonly kind: "restart"; readonly leaseMs: number; readonly maxAttempts: number | undefined }
  /** Nothing happened: the key is free. */
  | { readonly kind: "not-performed" }
  /** Nobody can say; the record stays unknown. */
  | { readonly kind: "unknown" }
  /** As if the key had never been seen. */
  | {
      readonly kind: "forgotten";
      /** How long a completed record may still be replayed by a tier of some process: until then the key cannot be claimed. */
      readonly refuseForMs?: number | undefined;
    };

export interface ResolveRequest {
  readonly key: RecordKey;
  readonly version: RecordVersion;
  /** The reconciler's or the operator's own token; it is what completed or restarted the record afterwards. */
  readonly token: ClaimToken;
  readonly verdict: Verdict;
  /** Also take a live claim away. Its holder is told `replaced` and cannot make the record again. */
  readonly evenIfLive: boolean;
}

export type ResolveOutcome =
  | { readonly kind: "resolved"; readonly attempt: number }
  | { readonly kind: "absent" }
  /** The record is not what it was when it was looked at. */
  | { readonly kind: "changed"; readonly record: RecordInfo }
  | { readonly kind: "live"; readonly remainingMs: number }
  | { readonly kind: "exhausted"; readonly attempts: number };

/** What a waiter has to know; `lapsed` is a claim that may be taken over. */
export interface KeyStatus {
  readonly state: "absent" | "claimed" | "lapsed" | "unknown" | "completed" | "released";
  /** Whoever holds, made unknown, completed or released it; `undefined` when absent. */
  readonly holder: ClaimToken | undefined;
}
