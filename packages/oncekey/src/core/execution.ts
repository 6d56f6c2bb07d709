/**
 * @module
 * Runs work that has won its claim, and settles how it ended.
 *
 * Invariants: the lease is renewed from before the work starts until its end is on record; a failure frees the
 * key only if the guarantee allows it; under exactly-once rows and completion commit as one, and whatever
 * the commit's three results (committed, refused, unknown) leave is told apart; those who wait in this process
 * hear what the record says, not what the work promised.
 */

import type { Call, Ended, Performed } from "./call.js";
import { type Engine, type Here, leaveHere } from "./engine.js";
import { isOncekeyError, OncekeyError, unreachable } from "./errors.js";
import { holdLease, type Lease } from "./lease.js";
import type { ClaimToken, StoredOutcome } from "./record.js";
import { inside } from "./reentry.js";
import type { Completion, Held } from "./settlement.js";
import type { ClaimRequest, CommitOutcome, TransactionSession } from "./store.js";
import { type Answer, NOBODY } from "./waiting-room.js";
import { createWork } from "./work.js";

export interface Execution<E> {
  readonly call: Call<E>;
  readonly claim: ClaimRequest;
  readonly attempt: number;
  readonly here: Here;
  readonly protected: boolean;
}

/** Runs the work and settles it. Rejects only with a coded refusal; failures of the work are endings. */
export async function execute<E>(engine: Engine, execution: Execution<E>): Promise<Performed<E>> {
  const { claim, call } = execution;
  const lease = holdLease(engine, {
    claim,
    storeTimeoutMs: call.policy.storeTimeoutMs,
    maxRunMs: call.policy.maxRunMs,
    protected: execution.protected,
    onGivenUp: () => leaveRoom(engine, execution),
  });
  try {
    const performed =
      call.policy.guarantee === "exactly-once"
        ? await runInTransaction(engine, execution, lease)
        : await runPlainly(engine, execution, lease);
    if (execution.protected || performed.kind === "superseded") return performed;
    return { kind: "unprotected", value: (performed as { readonly value: E }).value };
  } catch (error) {
    // Families turn failures of the work into endings, so this is a fault of an adapter: nobody knows what ran.
    if (!isOncekeyError(error))
      await fail(engine, execution, { kind: "failed", value: error, code: "FAULT", performed: "maybe" });
    throw error;
  } finally {
    lease.end();
    leave(engine, execution);
  }
}

function leave<E>(engine: Engine, { claim, here }: Execution<E>): void {
  leaveHere(engine, claim.key, here);
}

/** The key is another's, or will be: who waits here waits for that one now. */
function leaveRoom<E>(engine: Engine, execution: Execution<E>): void {
  leave(engine, execution);
  const { key, leaseMs } = execution.claim;
  engine.waiting.heldBy(key, { token: undefined, remainingMs: leaseMs, local: false });
}

async function runPlainly<E>(engine: Engine, execution: Execution<E>, lease: Lease): Promise<Performed<E>> {
  const { call, claim, attempt } = execution;
  const work = createWork(claim.key, attempt, lease, execution.protected, undefined);
  const ended = await inside(claim.key, () => call.run(work));
  if (ended.kind === "failed") return fail(engine, execution, ended);
  if (ended.outcome.body === undefined) reportNotKept(engine, claim);
  const completion = await engine.settlement.complete(heldOf(execution), ended.outcome);
  return tell(engine, execution, completion, ended);
}

function reportNotKept(engine: Engine, { operation, key, token }: ClaimRequest): void {
  engine.emit({ type: "result-not-kept", operation, key, token, reason: "too large or not serialisable" });
}

function heldOf({ claim, attempt, call }: Execution<unknown>): Held {
  return { claim, attempt, policy: call.policy };
}

/** Tells those who wait what the record says now, and the caller what that means for its own result. */
function tell<E>(
  engine: Engine,
  execution: Execution<E>,
  completion: Completion,
  { value, outcome }: { readonly value: E; readonly outcome: StoredOutcome },
): Performed<E> {
  const { attempt, claim } = execution;
  switch (completion.kind) {
    case "stored":
      settleRoom(engine, execution, outcome, claim.token);
      return { kind: "executed", value, attempt, ending: "kept" };
    case "pending":
      settleRoom(engine, execution, outcome, claim.token);
      return { kind: "executed", value, attempt, ending: "pending" };
    case "superseded":
      settleRoom(engine, execution, completion.outcome, completion.by);
      return { kind: "superseded", value, attempt, outcome: completion.outcome };
    case "running-elsewhere":
      leaveRoom(engine, execution);
      return { kind: "executed", value, attempt, ending: "kept" };
    default:
      return unreachable(completion);
  }
}

function settleRoom<E>(
  engine: Engine,
  execution: Execution<E>,
  outcome: StoredOutcome,
  completedBy: ClaimToken,
): void {
  leave(engine, execution);
  const answer: Answer = { kind: "completed", outcome, completedBy, compared: true };
  engine.waiting.settle(execution.claim.key, execution.claim.fingerprint, answer);
}

/** The work failed: free the key, or say that nobody knows, as the guarantee has it. */
async function fail<V>(
  engine: Engine,
  execution: Execution<unknown>,
  { value, code, performed }: Extract<Ended<V>, { readonly kind: "failed" }>,
): Promise<Performed<V>> {
  const { attempt, call, claim } = execution;
  if (call.policy.guarantee === "at-most-once" && performed === "maybe") {
    await engine.settlement.markUnknown(heldOf(execution), code);
    leave(engine, execution);
    engine.waiting.heldBy(claim.key, NOBODY);
    return { kind: "executed", value, attempt, ending: "unknown" };
  }
  await engine.settlement.release(heldOf(execution), true, code);
  leave(engine, execution);
  engine.waiting.released(claim.key);
  return { kind: "executed", value, attempt, ending: "released" };
}

/** Exactly once: the claim is there already; work, token check and completion are one transaction. */
async function runInTransaction<E>(
  engine: Engine,
  execution: Execution<E>,
  lease: Lease,
): Promise<Performed<E>> {
  const { call, claim, attempt } = execution;
  for (let repeat = 0; ; repeat += 1) {
    const session = begin(engine, execution);
    const work = createWork(claim.key, attempt, lease, execution.protected, session.handle);
    const ended = await inside(claim.key, () => call.run(work));
    if (ended.kind === "failed") {
      await session.rollback();
      return fail(engine, execution, ended);
    }
    if (!session.used())
      engine.emit({
        type: "transaction-unused",
        operation: claim.operation,
        key: claim.key,
        token: claim.token,
      });
    const committed = await commit(engine, execution, session, ended);
    if (committed.kind !== "refused") return afterCommit(engine, execution, committed, ended);
    const willRepeat = repeat < call.commitRepeats && lease.lost() === undefined;
    const { operation, key, token } = claim;
    engine.emit({ type: "not-committed", operation, key, token, reason: committed.reason, willRepeat });
    if (!willRepeat) return refuseCommit(engine, execution, ended);
  }
}

function begin<E>(engine: Engine, { call, claim, attempt }: Execution<E>): TransactionSession<unknown> {
  const session = engine.store.begin?.({ ...claim, attempt, maxTransactionMs: call.policy.maxTransactionMs });
  if (session === undefined) {
    throw new OncekeyError(
      "GUARANTEE_UNSUPPORTED",
      `The store ${engine.store.name} has no transactions, so it cannot give exactly-once.`,
    );
  }
  return session;
}

async function commit<E>(
  engine: Engine,
  { claim, call }: Execution<E>,
  session: TransactionSession<unknown>,
  { outcome, commit: what }: Extract<Ended<E>, { readonly kind: "kept" }>,
): Promise<CommitOutcome> {
  const { operation } = claim;
  const { storeTimeoutMs } = call.policy;
  const committed = await engine.calls
    .bounded("commit", operation, storeTimeoutMs, () => session.commit(outcome, what))
    .catch((): CommitOutcome => ({ kind: "undecided" }));
  if (committed.kind !== "undecided") return committed;
  // The answer to COMMIT was lost: the record itself says which it was.
  const [status] = await engine.calls
    .bounded("status", operation, storeTimeoutMs, () => engine.store.status([claim.key]))
    .catch(() => [undefined]);
  if (status === undefined || status.holder !== claim.token) return committed;
  return status.state === "completed" ? { kind: "committed" } : committed;
}

async function afterCommit<E>(
  engine: Engine,
  execution: Execution<E>,
  committed: Exclude<CommitOutcome, { readonly kind: "refused" }>,
  ended: Extract<Ended<E>, { readonly kind: "kept" }>,
): Promise<Performed<E>> {
  const { claim, attempt } = execution;
  const { operation, key, token } = claim;
  switch (committed.kind) {
    case "committed":
      engine.emit({
        type: "completed",
        operation,
        key,
        token,
        attempt,
        how: "stored",
        tombstone: ended.outcome.body === undefined,
      });
      return tell(engine, execution, { kind: "stored" }, ended);
    case "replaced":
      // Its rows are gone with the transaction, so its own result is worth nothing.
      if (committed.by === undefined) return refuseReplaced(engine, execution);
      return tell(
        engine,
        execution,
        { kind: "superseded", by: committed.by.token, outcome: committed.by.outcome },
        ended,
      );
    case "undecided":
      leaveRoom(engine, execution);
      throw new OncekeyError(
        "COMMIT_UNDECIDED",
        "The connection was lost while committing, and the record cannot be read. Ask again with the same key.",
        { retryAfterMs: 1_000 },
      );
    default:
      return unreachable(committed);
  }
}

async function refuseCommit<E>(engine: Engine, execution: Execution<E>, { value }: Ended<E>): Promise<never> {
  await fail(engine, execution, { kind: "failed", value, code: "NOT_COMMITTED", performed: "no" });
  throw new OncekeyError("NOT_COMMITTED", "The database refused to commit. Nothing happened; try again.", {
    retryAfterMs: 1_000,
  });
}

function refuseReplaced<E>(engine: Engine, execution: Execution<E>): never {
  leaveRoom(engine, execution);
  throw new OncekeyError(
    "NOT_COMMITTED",
    "Another attempt took this claim over before the commit. Nothing of this one was kept.",
    { retryAfterMs: 1_000 },
  );
}
