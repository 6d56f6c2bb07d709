/**
 * @module
 * Exactly once: the claim is there already; the work's rows, the check of its token and its completion are one
 * transaction.
 *
 * Invariant: whatever the commit's three results (committed, refused, unknown) leave is told apart. Refused means
 * that nothing happened; unknown releases nothing.
 */
import type { Awaitable } from "./awaitable.js";
import type { Ended, Performed } from "./call.js";
import { fail, giveUp, type Kept, type Running, release, tell } from "./ending.js";
import type { Engine } from "./engine.js";
import { isOncekeyError, OncekeyError, unreachable } from "./errors.js";
import type { ClaimRequest, CommitOutcome, TransactionSession } from "./store.js";
import { NOBODY } from "./waiting-room.js";

/** Runs the work with what it writes through. */
type RunWork = <E>(engine: Engine, running: Running<E>, transaction: unknown) => Awaitable<Ended<E>>;

export async function runInTransaction<E>(
  engine: Engine,
  running: Running<E>,
  runWork: RunWork,
): Promise<Performed<E>> {
  const { operation, key, token } = running.claim;
  for (let repeat = 0; ; repeat += 1) {
    const session = await begin(engine, running, repeat > 0);
    const ended = await runOrRollBack(engine, running, session, runWork);
    if (ended.kind === "failed") {
      const reason = refusedEarly(running, session);
      if (reason === undefined) return fail(engine, running, ended);
      if (willRepeat(engine, running, repeat, reason)) continue;
      return refuseCommit(engine, running, ended);
    }
    if (!session.used()) engine.emit({ type: "transaction-unused", operation, key, token });
    const committed = await commitOrGiveUp(engine, running, session, ended);
    if (committed.kind !== "refused") return afterCommit(engine, running, committed, ended);
    if (!willRepeat(engine, running, repeat, committed.reason)) return refuseCommit(engine, running, ended);
  }
}

/** Where work may be repeated, what it threw once the database had undone it is no failure of its own but a refused commit. */
function refusedEarly<E>({ call }: Running<E>, session: TransactionSession<unknown>): string | undefined {
  return call.commitRepeats === 0 ? undefined : session.undoneBy?.();
}

/** Tells that nothing was committed, and whether the work runs once more. */
function willRepeat<E>(
  engine: Engine,
  { call, claim, lease }: Running<E>,
  repeat: number,
  reason: string,
): boolean {
  const { operation, key, token } = claim;
  const again = repeat < call.commitRepeats && lease.lost() === undefined;
  engine.emit({ type: "not-committed", operation, key, token, reason, willRepeat: again });
  return again;
}

/** A transaction that cannot begin frees the key: nothing was done, and nothing stays of what was. */
async function begin<E>(
  engine: Engine,
  running: Running<E>,
  started: boolean,
): Promise<TransactionSession<unknown>> {
  const { call, claim, attempt, lease } = running;
  try {
    const { maxTransactionMs } = call.policy;
    const session = engine.store.begin?.({ ...claim, attempt, maxTransactionMs });
    if (session !== undefined) return session;
    throw new OncekeyError(
      "GUARANTEE_UNSUPPORTED",
      `The store ${engine.store.name} has no transactions, so it cannot give exactly-once.`,
    );
  } catch (error) {
    lease.end();
    await release(engine, running, started, isOncekeyError(error) ? error.code : undefined);
    engine.waiting.heldBy(claim.key, NOBODY);
    throw isOncekeyError(error) ? error : cannotBegin(error);
  }
}

function cannotBegin(cause: unknown): OncekeyError<"STORE_UNAVAILABLE"> {
  const message = "The store could not begin a transaction. Nothing was done; try again.";
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause });
}

async function runOrRollBack<E>(
  engine: Engine,
  running: Running<E>,
  session: TransactionSession<unknown>,
  runWork: RunWork,
): Promise<Ended<E>> {
  const { call, claim } = running;
  // A rollback that fails leaves nothing behind either: what is not committed never is.
  const rollBack = () =>
    engine.calls
      .bounded("rollback", claim.operation, call.policy.storeTimeoutMs, () => session.rollback())
      .catch(() => undefined);
  try {
    const ended = await runWork(engine, running, session.handle);
    if (ended.kind === "failed") await rollBack();
    return ended;
  } catch (error) {
    await rollBack();
    await fail(engine, running, { kind: "failed", value: undefined, code: "FAULT", performed: "no" });
    throw error;
  }
}

/** A commit that ends with a fault (the record cannot be read, say) leaves the claim to lapse: nobody knows better here. */
async function commitOrGiveUp<E>(
  engine: Engine,
  running: Running<E>,
  session: TransactionSession<unknown>,
  ended: Kept<E>,
): Promise<CommitOutcome> {
  try {
    return await commit(engine, running, session, ended);
  } catch (error) {
    giveUp(engine, running);
    throw error;
  }
}

async function commit<E>(
  engine: Engine,
  { claim, call }: Running<E>,
  session: TransactionSession<unknown>,
  { outcome, commit: what }: Kept<E>,
): Promise<CommitOutcome> {
  const { operation } = claim;
  const { storeTimeoutMs } = call.policy;
  try {
    const committed = await engine.calls.bounded("commit", operation, storeTimeoutMs, () =>
      session.commit(outcome, what),
    );
    if (committed.kind !== "undecided") return committed;
  } catch (error) {
    // A coded answer is about the record, which was looked at before anything was committed.
    if (!isOncekeyError(error, "STORE_UNAVAILABLE")) throw error;
  }
  return lookUp(engine, claim, storeTimeoutMs);
}

/**
 * The answer to COMMIT was lost: the record itself says which it was. While it is still claimed by this token the commit may
 * be on its way, so that decides nothing; once it is another's, or was taken away, the commit can land no more.
 */
async function lookUp(engine: Engine, claim: ClaimRequest, storeTimeoutMs: number): Promise<CommitOutcome> {
  const undecided = { kind: "undecided" } as const;
  const [status] = await engine.calls
    .bounded("status", claim.operation, storeTimeoutMs, () => engine.store.status([claim.key]))
    .catch(() => [undefined]);
  if (status === undefined || status.state === "absent") return undecided;
  if (status.holder !== claim.token || status.state === "released")
    return { kind: "replaced", by: undefined };
  return status.state === "completed" ? { kind: "committed" } : undecided;
}

async function afterCommit<E>(
  engine: Engine,
  running: Running<E>,
  committed: Exclude<CommitOutcome, { readonly kind: "refused" }>,
  ended: Kept<E>,
): Promise<Performed<E>> {
  const { claim, attempt } = running;
  switch (committed.kind) {
    case "committed": {
      const { operation, key, token } = claim;
      const tombstone = ended.outcome.body === undefined;
      engine.emit({ type: "completed", operation, key, token, attempt, how: "stored", tombstone });
      return tell(engine, running, { kind: "stored" }, ended);
    }
    case "replaced": {
      // Its rows are gone with the transaction, so its own result is worth nothing.
      const { by } = committed;
      if (by === undefined) return refuseReplaced(engine, running);
      return tell(engine, running, { kind: "superseded", by: by.token, outcome: by.outcome }, ended);
    }
    case "undecided":
      giveUp(engine, running);
      throw new OncekeyError(
        "COMMIT_UNDECIDED",
        "The connection was lost while committing, and the record cannot be read. Ask again with the same key.",
        { retryAfterMs: 1_000 },
      );
    default:
      return unreachable(committed);
  }
}

async function refuseCommit<E>(engine: Engine, running: Running<E>, { value }: Ended<E>): Promise<never> {
  await fail(engine, running, { kind: "failed", value, code: "NOT_COMMITTED", performed: "no" });
  throw new OncekeyError("NOT_COMMITTED", "The database refused to commit. Nothing happened; try again.", {
    retryAfterMs: 1_000,
  });
}

function refuseReplaced<E>(engine: Engine, running: Running<E>): never {
  giveUp(engine, running);
  throw new OncekeyError(
    "NOT_COMMITTED",
    "Another attempt took this claim over before the commit. Nothing of this one was kept.",
    { retryAfterMs: 1_000 },
  );
}
