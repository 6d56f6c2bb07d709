/**
 * @module
 * The one place that decides: who runs, who waits, who gets which answer, and what the record learns of it.
 *
 * `perform` serves functions and every framework alike. It gets an operation and the work, and answers with what
 * became of it; the families turn that into values or HTTP answers.
 *
 * Invariants: the work starts only under a claim of its own (or, by explicit policy, visibly unprotected);
 * whatever was claimed is completed, released, declared unknown or left to lapse; the record wins over any run.
 * How the work itself is run and settled is left to `execution.ts`.
 *
 * Crash points, each with a test: before the claim, claimed, after the effect, before the completion, after it,
 * before the answer. What a crash leaves is a claim that lapses, which the next caller meets by its guarantee.
 */

import { type Attempt, approach, runsWithoutStore, waitFor } from "./approach.js";
import { type Awaitable, started, whenDone } from "./awaitable.js";
import type { Call, Performed } from "./call.js";
import { type Engine, leaveHere } from "./engine.js";
import { isOncekeyError, type OncekeyError, unreachable } from "./errors.js";
import type { CallOutcome } from "./events.js";
import { execute } from "./execution.js";
import { finishedAs } from "./outcome.js";
import { type Finding, reconcile } from "./reconciling.js";
import { isInside } from "./reentry.js";
import {
  alreadyCompleted,
  attemptsExhausted,
  inFlight,
  keyReentered,
  keyReused,
  outcomeUnknown,
  storeFull,
} from "./refusals.js";
import type { ClaimRequest } from "./store.js";
import { closing } from "./waiting.js";
import { type Answer, type Holder, NOBODY } from "./waiting-room.js";

/** Rounds of "it has changed meanwhile, look again" before a caller is told that the key is in flight. */
const MAX_ROUNDS = 16;

/**
 * Answers one call: at once, where neither store nor work has to be waited for.
 *
 * @throws OncekeyError with the code of the refusal. The work was not started, or nothing of it was kept.
 */
export function perform<E>(engine: Engine, call: Call<E>): Awaitable<Performed<E>> {
  const startedMs = engine.clock.monotonicMs();
  const claim = claimOf(engine, call);
  const attempt: Attempt<E> = {
    call,
    claim,
    here: { fingerprint: claim.fingerprint, token: claim.token, running: false },
    startedMs,
    asked: false,
    claimedMs: startedMs,
    heard: false,
    won: false,
    started: false,
    waitedMs: 0,
  };
  return whenDone(
    started(() => decide(engine, attempt)),
    (performed) => {
      abandonUnused(engine, attempt);
      finish(engine, attempt, finishedAs(performed));
      return performed;
    },
    (error) => {
      abandonUnused(engine, attempt, error);
      const { operation, key } = claim;
      if (isOncekeyError(error)) {
        engine.emit({ type: "rejected", operation, key, code: error.code, cause: error.cause });
      }
      finish(engine, attempt, finishedAs({ kind: "refused", error, waitedMs: attempt.waitedMs }));
      throw error;
    },
  );
}

function finish<E>(engine: Engine, { claim, startedMs, waitedMs }: Attempt<E>, outcome: CallOutcome): void {
  const { operation, key } = claim;
  const tookMs = engine.clock.monotonicMs() - startedMs;
  engine.emit({ type: "finished", operation, key, outcome, tookMs, waitedMs });
}

/** What was sent for a caller whose work never started may have landed, or land later: nobody will use it. */
function abandonUnused<E>(
  engine: Engine,
  { call, claim, asked, won, started }: Attempt<E>,
  error?: unknown,
): void {
  if (started || !asked) return;
  if (won || isOncekeyError(error, "STORE_UNAVAILABLE") || engine.claiming.mayLand(claim)) {
    engine.claiming.abandon(claim, call.policy.storeTimeoutMs);
  }
}

function decide<E>(engine: Engine, attempt: Attempt<E>): Awaitable<Performed<E>> {
  const { call } = attempt;
  if (refusesNew(engine, call)) throw closing();
  if (isInside(call, engine.here.get(call.identity.key)?.running === true)) {
    throw keyReentered();
  }
  return look(engine, attempt, 0);
}

/** While the process closes nothing begins but the rest of what runs. */
function refusesNew<E>({ closing }: Engine, { part }: Call<E>): boolean {
  return closing && part !== true;
}

/** Gets the record's answer and acts on it; once more if it is not so any more. */
function look<E>(engine: Engine, attempt: Attempt<E>, round: number): Awaitable<Performed<E>> {
  if (round === MAX_ROUNDS) {
    throw inFlight(attempt.call.policy.leaseMs, "The record kept changing while it was looked at.");
  }
  const again = (performed: Performed<E> | "look-again"): Awaitable<Performed<E>> =>
    performed === "look-again" ? look(engine, attempt, round + 1) : performed;
  return whenDone(
    approach(engine, attempt),
    (answer) => whenDone(follow(engine, attempt, answer), again),
    (error) => withoutStore(engine, attempt, error),
  );
}

function claimOf<E>(
  engine: Engine,
  { identity, operation, label, fingerprint, policy }: Call<E>,
): ClaimRequest {
  return {
    key: identity.key,
    scopeId: identity.scopeId,
    operation,
    label,
    token: engine.mint(),
    fingerprint,
    guarantee: policy.guarantee,
    onLapse: policy.onLapse,
    leaseMs: policy.leaseMs,
    retentionMs: policy.retentionMs,
    maxAttempts: policy.maxAttempts,
  };
}

/** Acts on what the record said. `"look-again"`: it is not so any more. */
function follow<E>(
  engine: Engine,
  attempt: Attempt<E>,
  answer: Answer,
): Awaitable<Performed<E> | "look-again"> {
  const { call, claim } = attempt;
  const { operation, key } = claim;
  switch (answer.kind) {
    case "claimed":
      return run(engine, attempt, answer.attempt, answer.takeover);
    case "completed":
      if (call.policy.onCompleted === "reject") throw alreadyCompleted();
      engine.emit({ type: "replayed", operation, key, waitedMs: attempt.waitedMs });
      return { kind: "replayed", outcome: answer.outcome, waitedMs: attempt.waitedMs };
    case "mismatch":
      engine.emit({ type: "mismatch", operation, key });
      throw keyReused();
    case "exhausted":
      throw attemptsExhausted(answer.attempts);
    case "full":
      throw storeFull(answer.limit);
    case "unknown":
      return askWhatHappened(engine, attempt, answer);
    default:
      return unreachable(answer);
  }
}

/** The outcome is unknown: whoever the policy names is asked, once over all processes. */
async function askWhatHappened<E>(
  engine: Engine,
  attempt: Attempt<E>,
  unknown: Extract<Answer, { readonly kind: "unknown" }>,
): Promise<Performed<E> | "look-again"> {
  const { claim, here } = attempt;
  const { key, fingerprint } = claim;
  const found = await findOut(engine, attempt, unknown);
  if (found.kind === "restarted") {
    attempt.claimedMs = found.claimedMs;
    return run(engine, attempt, found.attempt, false);
  }
  leaveHere(engine, key, here);
  switch (found.kind) {
    case "changed":
    case "resolved":
      engine.waiting.heldBy(key, NOBODY);
      return "look-again";
    case "in-flight": {
      const holder: Holder = { token: found.holder, remainingMs: found.remainingMs, local: false };
      engine.waiting.heldBy(key, holder);
      const answer = await waitFor(engine, attempt, holder);
      return answer.kind === "unknown" ? "look-again" : follow(engine, attempt, answer);
    }
    case "exhausted": {
      const answer: Answer = { kind: "exhausted", attempts: found.attempts, lastCode: undefined };
      engine.waiting.settle(key, fingerprint, answer);
      return follow(engine, attempt, answer);
    }
    case "unknown":
      engine.waiting.settle(key, fingerprint, unknown);
      throw outcomeUnknown();
    default:
      return unreachable(found);
  }
}

async function findOut<E>(
  engine: Engine,
  { call, claim, here }: Attempt<E>,
  { madeBy }: Extract<Answer, { readonly kind: "unknown" }>,
): Promise<Finding> {
  const { key } = claim;
  if (!engine.here.has(key)) engine.here.set(key, here);
  try {
    return await reconcile(engine, { claim, policy: call.policy, encodeDone: call.encodeDone, madeBy });
  } catch (error) {
    leaveHere(engine, key, here);
    engine.waiting.fail(key, error);
    throw error;
  }
}

/** Runs the work under the claim that was won; those who wait here wait for it now. */
function run<E>(
  engine: Engine,
  attempt: Attempt<E>,
  count: number,
  takeover: boolean,
): Awaitable<Performed<E> | "look-again"> {
  const { call, claim, here } = attempt;
  const { operation, key, token } = claim;
  if (refusesNew(engine, call)) return giveBackAtClose(engine, attempt);
  if (engine.clock.monotonicMs() - attempt.claimedMs >= claim.leaseMs) {
    // This process stood still between winning the claim and starting the work: somebody else may have started it.
    // Its own token asks first, before those who wait here, for whom a lapse would mean that it has started.
    attempt.won = true;
    leaveHere(engine, key, here);
    return "look-again";
  }
  enter(engine, attempt);
  engine.emit({ type: takeover ? "takeover" : "claimed", operation, key, token, attempt: count });
  const { claimedMs } = attempt;
  return execute(engine, { call, claim, attempt: count, here, protected: true, claimedMs });
}

async function giveBackAtClose<E>(engine: Engine, { call, claim, here }: Attempt<E>): Promise<never> {
  leaveHere(engine, claim.key, here);
  await engine.claiming.giveBack(claim, call.policy.storeTimeoutMs);
  throw closing();
}

function enter<E>(engine: Engine, attempt: Attempt<E>): void {
  const { claim, here } = attempt;
  attempt.started = true;
  here.running = true;
  engine.here.set(claim.key, here);
  engine.waiting.heldBy(claim.key, { token: claim.token, remainingMs: claim.leaseMs, local: true });
}

/** The store did not answer the claim: refuse and let go of it, or run all the same and keep its token. */
function withoutStore<E>(engine: Engine, attempt: Attempt<E>, error: unknown): Awaitable<Performed<E>> {
  const { call, claim, claimedMs, here } = attempt;
  if (!runsWithoutStore(attempt, error) || refusesNew(engine, call)) {
    leaveHere(engine, claim.key, here);
    throw error;
  }
  const { key, operation, token } = claim;
  enter(engine, attempt);
  engine.emit({ type: "unprotected", operation, key, token, cause: (error as OncekeyError).cause });
  return execute(engine, { call, claim, attempt: 1, here, protected: false, claimedMs });
}
