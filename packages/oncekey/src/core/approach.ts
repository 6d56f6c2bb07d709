/**
 * @module
 * How a caller gets the record's answer: from the store, or through whoever asks or runs in this process already.
 *
 * Invariants: of many callers with the same request one asks the store and the rest wait for what it hears; a
 * caller whose request differs asks for itself, so only the store judges a mismatch. What the answer means is left to `perform.ts`.
 */
import { type Awaitable, whenDone } from "./awaitable.js";
import type { Call } from "./call.js";
import { type Engine, type Here, leaveHere } from "./engine.js";
import { isOncekeyError, OncekeyError, unreachable } from "./errors.js";
import { inFlight, outcomeUnknown, RETRY_AFTER_MS } from "./refusals.js";
import type { ClaimOutcome, ClaimRequest } from "./store.js";
import type { Answer, Holder, WaitResult } from "./waiting-room.js";

/** One caller on its way to an answer. */
export interface Attempt<E> {
  readonly call: Call<E>;
  readonly claim: ClaimRequest;
  readonly here: Here;
  readonly startedMs: number;
  /** A claim was sent: it may have landed, whatever was answered. */
  asked: boolean;
  /** When it was sent last. */
  claimedMs: number;
  /** It knows of the record, from the store or from whoever runs here: it is never run unprotected any more. */
  heard: boolean;
  /** It has won the claim and let it lapse before its work could start: nobody else may take it for a start. */
  won: boolean;
  /** Its work has started. */
  started: boolean;
  waitedMs: number;
}

/** Gets the record's answer, through whoever runs it here if somebody does. */
export function approach<E>(engine: Engine, attempt: Attempt<E>): Awaitable<Answer> {
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
function askAsFirst<E>(engine: Engine, attempt: Attempt<E>): Awaitable<Answer> {
  const { claim, here } = attempt;
  engine.here.set(claim.key, here);
  return whenDone(
    askStore(engine, attempt),
    (answer) => heardFirst(engine, attempt, answer),
    (error) => {
      // If it runs unprotected, those who wait here get its result all the same.
      if (runsWithoutStore(attempt, error)) throw error;
      leaveHere(engine, claim.key, here);
      engine.waiting.fail(claim.key, error);
      throw error;
    },
  );
}

function heardFirst<E>(engine: Engine, attempt: Attempt<E>, answer: ClaimOutcome): Awaitable<Answer> {
  const { claim, here } = attempt;
  const { key, fingerprint } = claim;
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
function askStore<E>(engine: Engine, attempt: Attempt<E>): Awaitable<ClaimOutcome> {
  attempt.asked = true;
  attempt.claimedMs = engine.clock.monotonicMs();
  const answer = engine.claiming.ask(attempt.claim, attempt.call.policy.storeTimeoutMs);
  return whenDone(answer, (found) => heard(engine, attempt, found));
}

function heard<E>(engine: Engine, attempt: Attempt<E>, answer: ClaimOutcome): ClaimOutcome {
  const { claim, call } = attempt;
  const { policy } = call;
  attempt.heard = true;
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

export async function waitFor<E>(engine: Engine, attempt: Attempt<E>, holder: Holder): Promise<Answer> {
  const { call, claim } = attempt;
  const waitMs = waitMsOf(call);
  if (waitMs <= 0) throw inFlight(holder.remainingMs, "The same operation is in flight.");
  attempt.heard = true;
  const sinceMs = engine.clock.monotonicMs();
  const signal = call.signal();
  const result = await engine.waiting.join(
    {
      key: claim.key,
      scopeId: claim.scopeId,
      operation: claim.operation,
      fingerprint: claim.fingerprint,
      waitMs: Math.max(0, waitMs - attempt.waitedMs),
      takesOver: call.policy.onReleased === "takeover",
      holds: call.policy.onLapse === "hold",
      storeTimeoutMs: call.policy.storeTimeoutMs,
      signal,
      claim: async () => askStore(engine, attempt),
      giveBack: () => engine.claiming.giveBack(claim, call.policy.storeTimeoutMs),
    },
    holder,
  );
  attempt.waitedMs += engine.clock.monotonicMs() - sinceMs;
  const { operation, key } = claim;
  engine.emit({ type: "waited", operation, key, waitedMs: attempt.waitedMs, result: result.kind });
  return answerOf(result, signal);
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

/** Only where nothing is known of the record: what is in flight, say, may be running elsewhere. */
export function runsWithoutStore<E>({ call, heard }: Attempt<E>, error: unknown): boolean {
  return isOncekeyError(error, "STORE_UNAVAILABLE") && call.policy.onStoreDown === "run" && !heard;
}
