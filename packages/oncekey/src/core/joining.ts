/**
 * @module
 * Work inside a transaction that its caller holds: claim, rows and completion are there when the caller commits, or never.
 *
 * There is no lease to renew and nobody to join: until the caller has committed, nobody can see the claim, and its row is
 * the transaction's. What the record says is decided here as everywhere; who begins, commits and gives up is left to the
 * caller, and the statements to the store.
 *
 * Invariants: all keys of a call are claimed, in one order, before any of its work starts; unless all of it is kept, the
 * transaction is put back to where it was before the call. Nothing is said of what is not committed: what has happened goes to
 * `later`, and only what is final by itself (a refusal, work that failed) is told at once.
 *
 * Each of these has a test: the work throws and the caller goes on; the work throws and its throw is kept; one of several
 * keys is refused; the database has ended the transaction under the work; the work asks for its own key.
 */
import type { Call, Performed } from "./call.js";
import type { Engine } from "./engine.js";
import { isOncekeyError, OncekeyError, unreachable } from "./errors.js";
import type { EventListener } from "./events.js";
import { compareFingerprints } from "./fingerprint.js";
import type { Lease } from "./lease.js";
import { pinClaim } from "./pinning.js";
import type { StoredOutcome } from "./record.js";
import { inside, isInside } from "./reentry.js";
import {
  alreadyCompleted,
  attemptsExhausted,
  inFlight,
  keyReentered,
  keyReused,
  outcomeUnknown,
  RETRY_AFTER_MS,
  storeFull,
} from "./refusals.js";
import type { ClaimRequest, JoinedClaimOutcome, JoinedTransaction, Savepoint } from "./store.js";
import { closing } from "./waiting.js";
import { beginWork } from "./work.js";

/** `failed`: this one is not kept, so none of them is; the transaction is where it was before. */
export type Joined<E> =
  | { readonly kind: "kept"; readonly performed: readonly Performed<E>[] }
  | { readonly kind: "failed"; readonly position: number; readonly performed: Performed<E> };

export interface Joining {
  readonly engine: Engine;
  readonly transaction: JoinedTransaction;
  /** Takes events of what is there once the caller has committed. */
  readonly later: EventListener;
}

/** One call among those that are made together. */
interface Part<E> {
  readonly call: Call<E>;
  readonly claim: ClaimRequest;
  /** What it ended with, for those after it that have the same key. */
  outcome: StoredOutcome | undefined;
}

/**
 * Runs calls in the caller's transaction, all or none, and answers in their order.
 *
 * @throws OncekeyError with the code of the first refusal; `RETRY_TRANSACTION` or `TRANSACTION_ABORTED`.
 */
export async function performJoined<E>(joining: Joining, calls: readonly Call<E>[]): Promise<Joined<E>> {
  const { engine, transaction } = joining;
  const { claims, parts } = partsOf(engine, calls);
  const before = await asked(() => transaction.savepoint());
  let joined: Joined<E>;
  try {
    const waitMs = Math.min(...calls.map(({ policy }) => policy.waitMs));
    const answers = await asked(() => transaction.claim(claims, waitMs));
    const answerOf = new Map(claims.map(({ key }, index) => [key, answers[index]]));
    for (const { call, claim } of parts) refuseUnlessOurs(call, answerOf.get(claim.key));
    joined = await performParts(joining, parts, answerOf);
    if (joined.kind === "kept") {
      await asked(() => before.release());
      return joined;
    }
  } catch (error) {
    await goBack(before);
    throw error;
  }
  await goBack(before);
  return joined;
}

function partsOf<E>(engine: Engine, calls: readonly Call<E>[]) {
  if (engine.closing) throw closing();
  const byKey = new Map<string, Part<E>>();
  const parts = calls.map((call): Part<E> => {
    if (isInside(call, true)) throw keyReentered();
    const { key } = call.identity;
    const first = byKey.get(key);
    if (first !== undefined) {
      if (compareFingerprints(first.claim.fingerprint, call.fingerprint) === "different") throw keyReused();
      // It comes after the first, and so to work that is completed.
      if (call.policy.onCompleted === "reject") throw alreadyCompleted();
      return first;
    }
    const part: Part<E> = { call, claim: claimOf(engine, call), outcome: undefined };
    byKey.set(key, part);
    return part;
  });
  return { parts, claims: [...byKey.values()].map(({ claim }) => claim) };
}

function claimOf<E>(engine: Engine, call: Call<E>): ClaimRequest {
  const { identity, operation, label, fingerprint, policy } = call;
  const { guarantee, onLapse, leaseMs, retentionMs, maxAttempts } = policy;
  const { key, scopeId } = identity;
  const token = engine.mint();
  const asked = { key, scopeId, operation, label, token, fingerprint };
  return { ...asked, guarantee, onLapse, leaseMs, retentionMs, maxAttempts };
}

/** Waiting for somebody else's work inside an open transaction would hold its rows and its connection: it is refused. */
function refuseUnlessOurs<E>({ policy }: Call<E>, answer: JoinedClaimOutcome | undefined): void {
  if (answer === undefined) throw new TypeError("The store answered fewer claims than it was asked for");
  switch (answer.kind) {
    case "claimed":
      return;
    case "completed":
      if (policy.onCompleted === "reject") throw alreadyCompleted();
      return;
    case "in-flight":
      throw inFlight(answer.remainingMs, "The same operation is in flight.");
    case "contended":
      throw inFlight(RETRY_AFTER_MS.least, "Another open transaction has the same operation in flight.");
    case "unknown":
      throw outcomeUnknown();
    case "mismatch":
      throw keyReused();
    case "exhausted":
      throw attemptsExhausted(answer.attempts);
    case "full":
      throw storeFull(answer.limit);
    default:
      unreachable(answer);
  }
}

async function performParts<E>(
  joining: Joining,
  parts: readonly Part<E>[],
  answerOf: ReadonlyMap<string, JoinedClaimOutcome | undefined>,
): Promise<Joined<E>> {
  const performed: Performed<E>[] = [];
  for (const [position, part] of parts.entries()) {
    const answer = answerOf.get(part.claim.key);
    const stored = answer?.kind === "completed" ? answer.outcome : part.outcome;
    const one =
      stored === undefined && answer?.kind === "claimed"
        ? await runPart(joining, part, answer)
        : replay(joining, part, stored);
    if (one.kind === "executed" && one.ending === "released") {
      return { kind: "failed", position, performed: one };
    }
    performed.push(one);
  }
  return { kind: "kept", performed };
}

function replay<E>({ later }: Joining, { claim }: Part<E>, stored: StoredOutcome | undefined): Performed<E> {
  if (stored === undefined) throw new TypeError("A call was neither claimed nor completed");
  later({ type: "replayed", operation: claim.operation, key: claim.key, waitedMs: 0 });
  return { kind: "replayed", outcome: stored, waitedMs: 0 };
}

async function runPart<E>(
  joining: Joining,
  part: Part<E>,
  won: Extract<JoinedClaimOutcome, { readonly kind: "claimed" }>,
): Promise<Performed<E>> {
  const { transaction, later } = joining;
  const { operation, key, token } = part.claim;
  const { attempt } = won;
  later({ type: won.takeover ? "takeover" : "claimed", operation, key, token, attempt });
  if (!won.compared) later({ type: "fingerprint-skipped", operation, key });
  const rows = await asked(() => transaction.savepoint());
  const ended = await runWork(joining, part, attempt);
  const { value } = ended;
  if (ended.kind === "failed") return { kind: "executed", value, attempt, ending: "released" };
  const { outcome, notKept } = ended;
  await asked(() => (ended.commit === "everything" ? rows.release() : rows.rollback()));
  await asked(() => transaction.complete([{ ...part.claim, attempt, outcome }]));
  part.outcome = outcome;
  const tombstone = outcome.body === undefined;
  later({ type: "completed", operation, key, token, attempt, how: "stored", tombstone });
  if (notKept !== undefined) later({ type: "result-not-kept", operation, key, token, reason: notKept });
  return { kind: "executed", value, attempt, ending: "kept" };
}

function runWork<E>({ engine, transaction }: Joining, { call, claim }: Part<E>, attempt: number) {
  const lease = heldByTransaction(engine, claim, call.policy.storeTimeoutMs);
  const attempted = {
    call,
    claim,
    attempt,
    protected: true,
    lease,
    claimedMs: undefined,
    nothingHappened: false,
    over: false,
  };
  const ended = inside(engine, call, beginWork(engine.runStep, attempted, transaction.handle));
  return Promise.resolve(ended).finally(() => {
    attempted.over = true;
  });
}

/** The row of the claim is the transaction's until its end: nobody can take it over, so there is nothing to renew. */
function heldByTransaction(engine: Engine, claim: ClaimRequest, storeTimeoutMs: number): Lease {
  let aborter: AbortController | undefined;
  return {
    signal() {
      aborter ??= new AbortController();
      return aborter.signal;
    },
    lost: () => undefined,
    assertHeld: () => undefined,
    confirm: () => Promise.resolve(),
    async guard(held) {
      if (await pinClaim(engine, claim, storeTimeoutMs, held)) return;
      throw new OncekeyError(
        "LEASE_LOST",
        "Only the transaction that this work has joined can see its claim.",
      );
    },
    renew: () => undefined,
    end: () => undefined,
  };
}

/** What is not an answer of ours is a fault of the connection: nothing is known of the transaction but that it cannot be used. */
async function asked<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    if (isOncekeyError(cause)) throw cause;
    const message = "A statement in the caller's transaction failed. Roll it back, and try again.";
    // biome-ignore lint/style/useErrorCause: OncekeyError takes it among its details.
    throw new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: RETRY_AFTER_MS.least, cause });
  }
}

/** A transaction that cannot go back has been ended by the database, which its caller has to hear before anything else. */
async function goBack(before: Savepoint): Promise<void> {
  try {
    await before.rollback();
  } catch (cause) {
    if (isOncekeyError(cause, "TRANSACTION_ABORTED")) throw cause;
    const message =
      "The database has ended the transaction. Nothing of it was kept; repeat it from its start.";
    // biome-ignore lint/style/useErrorCause: OncekeyError takes it among its details.
    throw new OncekeyError("TRANSACTION_ABORTED", message, { retryAfterMs: RETRY_AFTER_MS.least, cause });
  }
}
