/**
 * @module
 * Runs work that has won its claim.
 *
 * Invariants: the lease is renewed from the first wait of the work until it has ended; whatever happens, the work's end
 * reaches the record, or its claim is left to lapse, and nobody is left waiting for it here. What each end means for
 * the record is left to `ending.ts`, transactions to `committing.ts`.
 */
import { type Awaitable, started, whenDone } from "./awaitable.js";
import type { Ended, Performed } from "./call.js";
import { runInTransaction } from "./committing.js";
import { type Execution, fail, giveUp, heldOf, leave, type Running, tell } from "./ending.js";
import type { Engine } from "./engine.js";
import { isOncekeyError } from "./errors.js";
import { holdLease } from "./lease.js";
import { inside } from "./reentry.js";
import { beginWork } from "./work.js";

/** Runs the work and settles it. Rejects only with a coded refusal; failures of the work are endings. */
export function execute<E>(engine: Engine, execution: Execution<E>): Awaitable<Performed<E>> {
  const { claim, call, claimedMs } = execution;
  const lease = holdLease(engine, {
    claim,
    claimedMs,
    storeTimeoutMs: call.policy.storeTimeoutMs,
    maxRunMs: call.policy.maxRunMs,
    protected: execution.protected,
    onGivenUp: () => giveUp(engine, execution),
  });
  const running: Running<E> = {
    call,
    claim,
    claimedMs,
    attempt: execution.attempt,
    here: execution.here,
    protected: execution.protected,
    lease,
    nothingHappened: false,
    over: false,
  };
  const run = call.policy.guarantee === "exactly-once" ? runTransacted : runPlainly;
  const performing = started(() => run(engine, running));
  if (performing instanceof Promise) lease.renew();
  return whenDone(
    performing,
    (performed) => {
      stop(engine, running);
      if (execution.protected || performed.kind === "superseded") return performed;
      return { kind: "unprotected", value: (performed as { readonly value: E }).value };
    },
    (error) => {
      stop(engine, running);
      throw error;
    },
  );
}

function stop<E>(engine: Engine, running: Running<E>): void {
  running.over = true;
  running.lease.end();
  leave(engine, running);
}

function runTransacted<E>(engine: Engine, running: Running<E>): Promise<Performed<E>> {
  return runInTransaction(engine, running, runWork);
}

function runPlainly<E>(engine: Engine, running: Running<E>): Awaitable<Performed<E>> {
  return whenDone(
    started(() => runWork(engine, running, undefined)),
    (ended) => settle(engine, running, ended),
    async (error) => {
      await fail(engine, running, faulted(error));
      throw error;
    },
  );
}

function settle<E>(engine: Engine, running: Running<E>, ended: Ended<E>): Awaitable<Performed<E>> {
  if (ended.kind === "failed") return fail(engine, running, ended);
  const completion = engine.settlement.complete(heldOf(running), ended.outcome);
  return whenDone(completion, (known) => tell(engine, running, known, ended));
}

function runWork<E>(engine: Engine, running: Running<E>, transaction: unknown): Awaitable<Ended<E>> {
  // Work that could not be committed is run again, and says anew what has happened.
  running.nothingHappened = false;
  running.over = false;
  const begun = beginWork(engine.runStep, running, transaction);
  return whenDone(inside(engine, running.call, begun), (ended) => {
    running.over = true;
    return ended.kind === "failed" && running.nothingHappened ? { ...ended, performed: "no" } : ended;
  });
}

/** Families turn failures of the work into endings, so this is a fault of an adapter: nobody knows what ran. */
function faulted(error: unknown): Extract<Ended<undefined>, { readonly kind: "failed" }> {
  const code = isOncekeyError(error) ? error.code : "FAULT";
  return { kind: "failed", value: undefined, code, performed: "maybe" };
}
