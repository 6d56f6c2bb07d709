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
import type { Awaitable } from "./awaitable.js";
import type { ClaimToken, RecordInfo, RecordKey, RecordState, ScopeId, StoredOutcome } from "./record.js";
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
} from "./store-calls.js";
import type { JoinedTransaction, PinOutcome, PinRequest } from "./store-joins.js";

export type * from "./store-calls.js";
export type * from "./store-joins.js";

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
  /** A page ends after this long, in milliseconds, full or not. @defaultValue 1 000 */
  readonly withinMs?: number | undefined;
}

/** Records that match, without their results. A page may be short, or empty, and not be the last: `cursor` says so. */
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

/**
 * What a store has noticed by itself, outside any call.
 *
 * - `warning`: what an operator should know before trusting it, found after it was made.
 * - `server-replaced`: another server holds the records than before (restarted, or a replica that was promoted), and may lack
 *   the last of them.
 */
export interface StoreNotice {
  readonly kind: "warning" | "server-replaced";
  readonly text: string;
}

/** A registration for wake-ups or notices; `close` may be called more than once. */
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
  /**
   * Why the database has undone the work by itself, if it has, and the same work may succeed at once: a deadlock, a serialization
   * failure, a lost connection. Not said of what was undone because it took too long.
   */
  undoneBy?(): string | undefined;
  /** Commits the rows (or, with `"record"`, drops them) and the completion as one. */
  commit(outcome: StoredOutcome, what: "everything" | "record"): Promise<CommitOutcome>;
  /** Leaves nothing behind. Safe to call after an end. */
  rollback(): Promise<void>;
}

/**
 * A store of records. `Tx` is what work writes through under `"exactly-once"`; `never` if it has no transactions. `Held` is
 * what it needs of a transaction that its caller holds (as little as one method, so that every query builder's can be adapted
 * in a line); `never` if it can take part in none.
 */
export interface Store<Tx = unknown, Held = never> {
  /** For events and messages: `memory`, `sqlite`, … */
  readonly name: string;
  readonly traits: StoreTraits;
  /** What an operator should know before trusting it, found when it was made; the core reports each as an event. */
  readonly warnings?: readonly string[];
  /** Tells `listen` of every warning so far, and of every notice from now on; the core reports each as an event. */
  notices?(listen: (notice: StoreNotice) => void): Watch;

  /**
   * For how long a completed record can still be replayed by some process after it was forgotten, where processes keep copies
   * (`oncekey/stores/tiered`). @defaultValue 0
   */
  readonly replaysForMs?: number | undefined;

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
  claim(request: ClaimRequest): Awaitable<ClaimOutcome>;
  /** Renews the lease, also a lapsed one that nobody has taken over. */
  extend(request: ExtendRequest): Awaitable<ExtendOutcome>;
  /** Stores the outcome and starts the retention. The first outcome stays. Makes the record again if it is gone. */
  complete(request: CompleteRequest): Awaitable<CompleteOutcome>;
  /** Frees the key: the work is known not to have been done. */
  release(request: ReleaseRequest): Awaitable<ReleaseOutcome>;
  /** Says that nobody knows how the attempt ended. Such a record has no end of its own. */
  markUnknown(request: MarkUnknownRequest): Promise<MarkUnknownOutcome>;
  /** Claims the right to find out how an unknown record ended. One reconciler at a time. */
  reconcile(request: ReconcileRequest): Promise<ReconcileOutcome>;
  /** Applies a verdict if the record still has `version`. */
  resolve(request: ResolveRequest): Promise<ResolveOutcome>;

  /**
   * The state of many keys in one round trip, in the order asked. One that cannot be read is `lapsed`, by nobody: whoever claims
   * it is told, and the others are not disturbed.
   */
  status(keys: readonly RecordKey[]): Promise<readonly KeyStatus[]>;
  /** Calls `wake` soon after `key` was completed, released, made unknown or resolved. May wake too often or, rarely, not at all. */
  watch?(key: RecordKey, wake: WakeUp): Watch;

  find(key: RecordKey): Promise<RecordInfo | undefined>;
  /**
   * Pages through records in a stable order: what is there throughout is on exactly one page. Those that have expired are left
   * out. A filter that matches little gives short pages rather than a late one.
   *
   * @throws OncekeyError `CONFIGURATION_INVALID` for a limit that is out of bounds, or a cursor that no page gave.
   */
  list(request: ListRequest): Promise<RecordPage>;
  /** Removes up to `limit` expired records; never a live claim, never an unknown one. Returns how many. */
  purge(limit: number): Promise<number>;

  /**
   * Removes whatever lies under `key`, also what cannot be read: for an operator who has looked at it by other means. A store in
   * which nothing can be damaged need not have it.
   */
  discard?(key: RecordKey): Promise<void>;

  /** Opens a transaction for `"exactly-once"`. A store without transactions does not have it. */
  begin?(request: TransactionRequest): TransactionSession<Tx>;

  /** Takes part in a transaction that the caller holds. Runs no statement by itself. */
  join?(transaction: Held): JoinedTransaction;
  /**
   * Makes sure, until the caller's transaction ends, that nobody takes this claim over, releases, resolves or forgets it;
   * whoever tries meets a live claim. Renewals and the completion of its own holder pass.
   */
  pin?(transaction: Held, request: PinRequest): Promise<PinOutcome>;

  /** Frees connections and timers. Safe to call again; every later call rejects. */
  close(): Promise<void>;
}
