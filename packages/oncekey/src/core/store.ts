/**
 * @module
 * The port that every store implements.
 *
 * ```
 *              claim             complete
 *   absent ──────────▶ claimed ────────────▶ completed ── retention ends ──▶ absent
 *      ▲                │   ▲  │
 *      └─── release ────┘   │  └─ lease lapses ─▶ takeover, or unknown ─ reconcile / resolve
 *                           └─ extend
 * ```
 *
 * Invariants, proven for each store by `storeContract` of `oncekey/testing`:
 *
 * - Each call is atomic, on one key at a time.
 * - Each call is repeatable with its token: if its answer was lost, asking again tells how it ended.
 * - No record is changed without its token (or, by an operator, its version).
 * - Durations travel, instants do not: the store's own clock decides what has lapsed or expired.
 * - A rejected call may have landed. Only an answer says what happened.
 *
 * Which outcomes a caller gets for them is left to the core; `transitions.ts` holds the table itself, which a
 * store in JavaScript calls and a store on a server restates in its own language.
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
  | { readonly kind: "forgotten" };

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

export interface ListRequest {
  readonly scopeId?: ScopeId | undefined;
  readonly operation?: string | undefined;
  /** `"lapsed"` lists claims whose lease has ended. */
  readonly state?: RecordState | "lapsed" | undefined;
  /** Only records that have been in their state at least this long. */
  readonly olderThanMs?: number | undefined;
  /** 1 to 1,000. */
  readonly limit: number;
  /** From the page before; opaque. */
  readonly cursor?: string | undefined;
}

export interface RecordPage {
  readonly records: readonly RecordInfo[];
  /** Records at this place that are damaged, or of an unknown version: one of them hides none of the others. */
  readonly unreadable?: readonly RecordKey[] | undefined;
  /** `undefined` on the last page. */
  readonly cursor: string | undefined;
}

/** What can make the store lose something it has acknowledged. At-most-once needs a store that loses nothing. */
export interface StoreTraits {
  readonly forgetsOn: {
    readonly processCrash: boolean;
    readonly powerLoss: boolean;
    readonly failover: boolean;
    readonly eviction: boolean;
  };
  /** Who sees the same records: this process, the processes of this host, or every host. */
  readonly reach: "process" | "host" | "network";
}

/** A registration for wake-ups; `close` may be called more than once. */
export interface Watch {
  close(): void;
}

/** Where a record has got to is only a hint: whoever is woken reads again. */
export type WakeUp = () => void;

export interface TransactionRequest extends ClaimIdentity {
  readonly attempt: number;
  /** A transaction older than this is rolled back by the store. */
  readonly maxTransactionMs: number;
}

/**
 * - `committed`: rows and completion are there together (`"everything"`), or the completion alone (`"record"`).
 * - `refused`: nothing happened, for a reason that repeating may cure (serialization, deadlock, silent rollback).
 * - `replaced`: another token has the key; everything was rolled back.
 * - `undecided`: the connection was lost at COMMIT and the store cannot be asked which it was.
 */
export type CommitOutcome =
  | { readonly kind: "committed" }
  | { readonly kind: "refused"; readonly reason: string }
  | {
      readonly kind: "replaced";
      readonly by: { readonly token: ClaimToken; readonly outcome: StoredOutcome } | undefined;
    }
  | { readonly kind: "undecided" };

/** One transaction for one attempt. It begins at its first statement and ends with exactly one of commit and rollback. */
export interface TransactionSession<Tx> {
  /** What the work writes through. After the end its statements throw `TRANSACTION_CLOSED`. */
  readonly handle: Tx;
  /** Whether any statement went through it. */
  used(): boolean;
  /** Commits the rows (or, with `"record"`, drops them) and the completion as one. */
  commit(outcome: StoredOutcome, what: "everything" | "record"): Promise<CommitOutcome>;
  /** Leaves nothing behind. Safe to call after an end. */
  rollback(): Promise<void>;
}

/** A store of records. `Tx` is what work writes through under `"exactly-once"`; `never` if it has no transactions. */
export interface Store<Tx = unknown> {
  /** For events and messages: `memory`, `sqlite`, … */
  readonly name: string;
  readonly traits: StoreTraits;
  /** What an operator should know before trusting it, found when it was made; the core reports each as an event. */
  readonly warnings?: readonly string[];

  /**
   * Makes the caller the only executor of `key`, or says why it cannot be.
   *
   * Of any number of concurrent callers exactly one gets `"claimed"`. A claim whose lease has lapsed is taken
   * over under the new token, so its former holder can no longer complete or release it. Asked again with the
   * same token it answers `"claimed"` with the same attempt. A completed key answers with its outcome in this
   * one round trip.
   *
   * @throws OncekeyError `RECORD_UNREADABLE` if the record is damaged or of an unknown version.
   */
  claim(request: ClaimRequest): Promise<ClaimOutcome>;
  /** Renews the lease, also a lapsed one that nobody has taken over. */
  extend(request: ExtendRequest): Promise<ExtendOutcome>;
  /** Stores the outcome and starts the retention. The first outcome stays. Makes the record again if it is gone. */
  complete(request: CompleteRequest): Promise<CompleteOutcome>;
  /** Frees the key: the work is known not to have been done. */
  release(request: ReleaseRequest): Promise<ReleaseOutcome>;
  /** Says that nobody knows how the attempt ended. Such a record has no end of its own. */
  markUnknown(request: MarkUnknownRequest): Promise<MarkUnknownOutcome>;
  /** Claims the right to find out how an unknown record ended. One reconciler at a time. */
  reconcile(request: ReconcileRequest): Promise<ReconcileOutcome>;
  /** Applies a verdict if the record still has `version`. */
  resolve(request: ResolveRequest): Promise<ResolveOutcome>;

  /** The state of many keys in one round trip, in the order asked. */
  status(keys: readonly RecordKey[]): Promise<readonly KeyStatus[]>;
  /** Calls `wake` soon after `key` was completed, released, made unknown or resolved. May wake too often or, rarely, not at all. */
  watch?(key: RecordKey, wake: WakeUp): Watch;

  find(key: RecordKey): Promise<RecordInfo | undefined>;
  /** Pages through records in a stable order. */
  list(request: ListRequest): Promise<RecordPage>;
  /** Removes up to `limit` expired records; never a live claim, never an unknown one. Returns how many. */
  purge(limit: number): Promise<number>;

  /** Opens a transaction for `"exactly-once"`. A store without transactions does not have it. */
  begin?(request: TransactionRequest): TransactionSession<Tx>;

  /** Frees connections and timers. Safe to call again; every later call rejects. */
  close(): Promise<void>;
}
