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
import type { Call, Performed } from "./call.js";
import { type Engine, type Here, leaveHere } from "./engine.js";
import { isOncekeyError, OncekeyError, unreachable } from "./errors.js";
import { execute } from "./execution.js";
import { finishedAs } from "./outcome.js";
import { type Finding, reconcile } from "./reconciling.js";
import { isInside } from "./reentry.js";
import type { ClaimOutcome, ClaimRequest } from "./store.js";
import { type Answer, type Holder, NOBODY, type WaitResult } from "./waiting.js";

/** Rounds of "it has changed meanwhile, look again" before a caller is told that the key is in flight. */
const MAX_ROUNDS = 16;
const RETRY_AFTER_MS = { least: 1_000, most: 5_000 } as const;

/** One caller on its way to an answer. */
interface Attempt<E> {
  readonly call: Call<E>;
  readonly claim: ClaimRequest;
  readonly here: Here;
  /** A claim was sent: it may have landed, whatever was answered. */
  asked: boolean;
  waitedMs: number;
}

/**
 * Answers one call.
 *
 * @throws OncekeyError with the code of the refusal. The work was not started, or nothing of it was kept.
 */
export async function perform<E>(engine: Engine, call: Call<E>): Promise<Performed<E>> {
  const { clock, emit } = engine;
  const startedMs = clock.monotonicMs();
  const claim = claimOf(engine, call);
  const here: Here = { fingerprint: claim.fingerprint, token: claim.token, running: false };
  const attempt: Attempt<E> = { call, claim, here, asked: false, waitedMs: 0 };
  const { operation, identity } = call;
  const finish = (outcome: ReturnType<typeof finishedAs>): void => {
    const tookMs = clock.monotonicMs() - startedMs;
    emit({ type: "finished", operation, key: identity.key, outcome, tookMs, waitedMs: attempt.waitedMs });
  };
  try {
    const performed = await decide(engine, attempt);
    finish(finishedAs(performed));
    return performed;
  } catch (error) {
    if (isOncekeyError(error)) emit({ type: "rejected", operation, key: identity.key, code: error.code });
    finish(finishedAs({ kind: "refused", error, waitedMs: attempt.waitedMs }));
    throw error;
  }
}

async function decide<E>(engine: Engine, attempt: Attempt<E>): Promise<Performed<E>> {
  const { call } = attempt;
  if (engine.closing)
    throw new OncekeyError("CLOSING", "The process is shutting down. Try again.", { retryAfterMs: 1_000 });
  if (isInside(call.identity.key)) {
    throw new OncekeyError(
      "KEY_REENTERED",
      "This work asked for its own key and would wait for itself. Use another key or operation inside.",
    );
  }
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    let answer: Answer;
    try {
      answer = await approach(engine, attempt);
    } catch (error) {
      return withoutStore(engine, attempt, error);
    }
    const performed = await follow(engine, attempt, answer);
    if (performed !== "look-again") return performed;
  }
  throw inFlight(call.policy.leaseMs, "The record kept changing while it was looked at.");
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

/** Gets the record's answer, through whoever runs it here if somebody does. */
async function approach<E>(engine: Engine, attempt: Attempt<E>): Promise<Answer> {
  const { call, claim } = attempt;
  const { key, fingerprint } = claim;
  const pending = engine.settlement.pending(key, fingerprint);
  if (pending === "mismatch") return { kind: "mismatch", state: "completed" };
  if (pending !== undefined) {
    return { kind: "completed", outcome: pending.outcome, completedBy: claim.token, compared: true };
  }
  const here = engine.here.get(key);
  if (here === undefined) return askAsFirst(engine, attempt);
  const mayWait = here.running || waitMsOf(call) > 0;
  if (here.fingerprint !== fingerprint || !mayWait) return askAlone(engine, attempt);
  const token = here.running ? here.token : undefined;
  return waitFor(engine, attempt, { token, remainingMs: call.policy.leaseMs, local: true });
}

/** The first of this process asks; whoever comes with the same request meanwhile waits for its answer. */
async function askAsFirst<E>(engine: Engine, attempt: Attempt<E>): Promise<Answer> {
  const { claim, here } = attempt;
  const { key, fingerprint } = claim;
  engine.here.set(key, here);
  let answer: ClaimOutcome;
  try {
    answer = await askStore(engine, attempt);
  } catch (error) {
    // If it runs unprotected, those who wait here get its result all the same.
    if (runsWithoutStore(attempt, error)) throw error;
    leaveHere(engine, key, here);
    engine.waiting.fail(key, error);
    throw error;
  }
  if (answer.kind === "claimed" || answer.kind === "unknown") return answer;
  leaveHere(engine, key, here);
  if (answer.kind !== "in-flight") {
    engine.waiting.settle(key, fingerprint, answer);
    return answer;
  }
  const holder: Holder = { token: answer.holder, remainingMs: answer.remainingMs, local: false };
  engine.waiting.heldBy(key, holder);
  return waitFor(engine, attempt, holder);
}

/** Another request runs here under this key: only the store can tell what this one gets. */
async function askAlone<E>(engine: Engine, attempt: Attempt<E>): Promise<Answer> {
  const answer = await askStore(engine, attempt);
  if (answer.kind !== "in-flight") return answer;
  return waitFor(engine, attempt, { token: answer.holder, remainingMs: answer.remainingMs, local: false });
}

/** Asks the store. An unknown record that may not be reconciled yet counts as in flight until it may. */
async function askStore<E>(engine: Engine, attempt: Attempt<E>): Promise<ClaimOutcome> {
  const { claim } = attempt;
  const { policy } = attempt.call;
  attempt.asked = true;
  const answer = await engine.claiming.ask(claim, policy.storeTimeoutMs);
  if ("compared" in answer && !answer.compared) {
    engine.emit({ type: "fingerprint-skipped", operation: claim.operation, key: claim.key });
  }
  if (answer.kind !== "unknown" || policy.reconcile === undefined) return answer;
  const remainingMs = policy.leaseMs - answer.lapsedForMs;
  // Whoever held it may only be slow: it is asked about one lease after the lapse, not before.
  if (remainingMs <= 0) return answer;
  return { kind: "in-flight", holder: answer.madeBy, remainingMs, compared: answer.compared };
}

function waitMsOf<E>({ waitMs, policy }: Call<E>): number {
  return waitMs ?? policy.waitMs;
}

async function waitFor<E>(engine: Engine, attempt: Attempt<E>, holder: Holder): Promise<Answer> {
  const { call, claim } = attempt;
  const waitMs = waitMsOf(call);
  if (waitMs <= 0) throw inFlight(holder.remainingMs, "The same operation is in flight.");
  const sinceMs = engine.clock.monotonicMs();
  const result = await engine.waiting.join(
    {
      key: claim.key,
      scopeId: claim.scopeId,
      operation: claim.operation,
      fingerprint: claim.fingerprint,
      waitMs: Math.max(0, waitMs - attempt.waitedMs),
      takesOver: call.policy.onReleased === "takeover",
      storeTimeoutMs: call.policy.storeTimeoutMs,
      signal: call.signal,
      claim: () => askStore(engine, attempt),
      giveBack: () => engine.claiming.abandon(claim, call.policy.storeTimeoutMs),
    },
    holder,
  );
  attempt.waitedMs += engine.clock.monotonicMs() - sinceMs;
  const { operation, key } = claim;
  engine.emit({ type: "waited", operation, key, waitedMs: attempt.waitedMs, result: result.kind });
  return answerOf(result, call.signal);
}

function answerOf(result: WaitResult, signal: AbortSignal | undefined): Answer {
  switch (result.kind) {
    case "answered":
      return result.answer;
    case "timed-out":
      throw inFlight(result.remainingMs, "The same operation is still in flight; the wait for it ran out.");
    case "crowded":
      throw inFlight(result.remainingMs, "The same operation is in flight and too many already wait for it.");
    case "unknown":
      throw outcomeUnknown();
    case "attempt-failed":
      throw new OncekeyError("ATTEMPT_FAILED", "The attempt that this repeat waited for failed. Try again.", {
        retryAfterMs: RETRY_AFTER_MS.least,
      });
    case "left":
      throw signal?.reason;
    case "failed":
      throw result.error;
    default:
      return unreachable(result);
  }
}

/** Acts on what the record said. `"look-again"`: it is not so any more. */
async function follow<E>(
  engine: Engine,
  attempt: Attempt<E>,
  answer: Answer,
): Promise<Performed<E> | "look-again"> {
  const { call, claim } = attempt;
  const { operation, key } = claim;
  switch (answer.kind) {
    case "claimed":
      return run(engine, attempt, answer.attempt, answer.takeover);
    case "completed":
      if (call.policy.onCompleted === "reject") {
        throw new OncekeyError("ALREADY_COMPLETED", "The operation was completed before.", {
          completed: true,
        });
      }
      engine.emit({ type: "replayed", operation, key, waitedMs: attempt.waitedMs });
      return { kind: "replayed", outcome: answer.outcome, waitedMs: attempt.waitedMs };
    case "mismatch":
      engine.emit({ type: "mismatch", operation, key });
      throw new OncekeyError(
        "KEY_REUSED",
        "The key was used before for a request with other content. Use a new key for a new request.",
      );
    case "exhausted":
      throw new OncekeyError(
        "ATTEMPTS_EXHAUSTED",
        `The operation was started ${answer.attempts} times without success and is not started again.`,
      );
    case "full":
      throw new OncekeyError(
        "CAPACITY_EXCEEDED",
        `The idempotency store has no room left (${answer.limit}).`,
        { retryAfterMs: RETRY_AFTER_MS.most },
      );
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
  if (found.kind === "restarted") return run(engine, attempt, found.attempt, false);
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

function outcomeUnknown(): OncekeyError<"OUTCOME_UNKNOWN"> {
  return new OncekeyError(
    "OUTCOME_UNKNOWN",
    "The operation was started and nobody knows how it ended. It is held until somebody says.",
  );
}

/** Runs the work under the claim that was won; those who wait here wait for it now. */
async function run<E>(
  engine: Engine,
  attempt: Attempt<E>,
  count: number,
  takeover: boolean,
): Promise<Performed<E>> {
  const { call, claim, here } = attempt;
  const { operation, key, token } = claim;
  enter(engine, attempt);
  engine.emit({ type: takeover ? "takeover" : "claimed", operation, key, token, attempt: count });
  return execute(engine, { call, claim, attempt: count, here, protected: true });
}

function enter<E>(engine: Engine, { claim, here }: Attempt<E>): void {
  here.running = true;
  engine.here.set(claim.key, here);
  engine.waiting.heldBy(claim.key, { token: claim.token, remainingMs: claim.leaseMs, local: true });
}

/** A wait that failed is refused even then: its attempt may be running elsewhere. */
function runsWithoutStore<E>({ call, waitedMs }: Attempt<E>, error: unknown): boolean {
  return isOncekeyError(error, "STORE_UNAVAILABLE") && call.policy.onStoreDown === "run" && waitedMs === 0;
}

/** The store did not answer the claim: refuse and let go of it, or run all the same and keep its token. */
async function withoutStore<E>(engine: Engine, attempt: Attempt<E>, error: unknown): Promise<Performed<E>> {
  const { call, claim, here } = attempt;
  if (!runsWithoutStore(attempt, error)) {
    const mayHaveLanded = attempt.asked && isOncekeyError(error, "STORE_UNAVAILABLE");
    if (mayHaveLanded) engine.claiming.abandon(claim, call.policy.storeTimeoutMs);
    throw error;
  }
  const { key, operation, token } = claim;
  enter(engine, attempt);
  engine.emit({ type: "unprotected", operation, key, token, cause: (error as OncekeyError).cause });
  return execute(engine, { call, claim, attempt: 1, here, protected: false });
}

/** A refusal that says when it makes sense to ask again. */
export function inFlight(remainingMs: number, what: string): OncekeyError<"IN_FLIGHT"> {
  const retryAfterMs = Math.min(Math.max(remainingMs, RETRY_AFTER_MS.least), RETRY_AFTER_MS.most);
  return new OncekeyError("IN_FLIGHT", `${what} Try again later.`, { retryAfterMs });
}
