/**
 * @module
 * The part of the port that concerns a transaction of the caller's own: taking part in it (`join`) and pinning a claim in
 * it (`pin`). Both are optional; a store has them where its records lie in the caller's database.
 *
 * Invariants, proven by the groups "joining" and "pinning" of `storeContract`:
 *
 * - Begin, commit and rollback are the caller's. Nothing here ends its transaction, and nothing that it wrote is undone,
 *   save what was written after a savepoint that is rolled back.
 * - Everything goes through the caller's transaction, one statement after the other. Until the caller has committed nobody
 *   else can see any of it, and nobody is woken.
 * - Whatever is answered, and whatever is thrown other than `TRANSACTION_ABORTED`, the transaction can go on: what could
 *   poison it is run behind a savepoint. An isolation of READ COMMITTED is enough; stricter ones may have to be repeated.
 * - Every wait for somebody else's transaction is bounded, and settings that bound it are put back.
 *
 * Both may throw: `RETRY_TRANSACTION` if the transaction conflicts with what it cannot see (a record younger than its
 * snapshot, a serialization failure, a deadlock that left it open): repeat it from its start. `TRANSACTION_ABORTED` if the
 * database has ended it (a deadlock of InnoDB, a lost connection, a rollback behind our back): nothing of it is kept.
 * `GUARANTEE_UNSUPPORTED` if what was handed over is in no transaction, where the store can tell. `CONFIGURATION_INVALID` if
 * it has not the methods that a transaction of that client has.
 *
 * So that the raw query of every query builder can carry them, the statements of a store in SQL use each parameter once and
 * in order, hold no question mark but placeholders, and read what they found out from rows, never from a count.
 *
 * What a work's outcome means for the savepoints is left to `joining.ts`.
 */
import type { ClaimToken, RecordKey } from "./record.js";
import type { ClaimOutcome, ClaimRequest, CompleteRequest } from "./store-calls.js";

/**
 * `contended`: another open transaction has the key and did not end within the wait. Nothing was claimed, and nothing is
 * known of the record.
 */
export type JoinedClaimOutcome = ClaimOutcome | { readonly kind: "contended" };

/**
 * A point of the caller's transaction to go back to. `release` keeps what was done since, and `rollback` undoes it; either
 * ends the savepoint, with all that were made after it, and the transaction goes on.
 */
export interface Savepoint {
  release(): Promise<void>;
  rollback(): Promise<void>;
}

/** A caller's transaction, as a store takes part in it. Its calls do not overlap: each is made when the one before has ended. */
export interface JoinedTransaction {
  /**
   * What the work writes through: what was handed over (the port's `Held`), or the same with a guard around it. Once the database has ended the
   * transaction, its statements throw `TRANSACTION_ABORTED`, where they would otherwise be committed one by one.
   */
  readonly handle: unknown;
  savepoint(): Promise<Savepoint>;
  /**
   * Claims several keys, in the order of the keys whatever order they come in, so that two such transactions never wait for
   * each other; answers in the order asked. No key is asked for twice. A key that is not claimed (completed, in flight,
   * mismatch …) does not keep the others from being claimed: the core goes back to a savepoint if it wants none.
   *
   * Reads what others have committed up to now, not up to the transaction's snapshot; where the two differ and the isolation
   * forbids to go on, it throws `RETRY_TRANSACTION`. Claimed, a key stays this transaction's until its end, without renewal.
   *
   * Asked directly after a savepoint was made, to which the core goes back if it throws, or if any key is `contended`: so the
   * database may have refused a statement here.
   *
   * @param waitMs how long one waits, in all, for other open transactions; 0: not at all.
   */
  claim(requests: readonly ClaimRequest[], waitMs: number): Promise<readonly JoinedClaimOutcome[]>;
  /**
   * Completes what was claimed here. The retention counts from now.
   *
   * @throws OncekeyError `TRANSACTION_ABORTED` if one of them is no claim of that token any more: the work has rolled it back.
   */
  complete(requests: readonly CompleteRequest[]): Promise<void>;
}

export interface PinRequest {
  readonly key: RecordKey;
  readonly token: ClaimToken;
  /** The longest that it waits for somebody who is just ending the claim. */
  readonly waitMs: number;
}

/** `not-held`: the record is gone, or is another's, or has ended. A lapsed claim that nobody took over is held. */
export type PinOutcome = { readonly kind: "pinned" } | { readonly kind: "not-held" };
