/**
 * @module
 * Steps: parts of work whose results are kept one by one, so that work which is run again goes on where it was.
 *
 * A step is an operation like any other, under a record whose key is made of the operation's and its name: it is claimed,
 * renewed, completed and answered by the engine. What is said here is only how the two depend on each other.
 *
 * Invariants: a step starts only while its work's claim is held, and its own; how long it may run, and how long it may wait for
 * an earlier attempt that is still in it, ends with its work. What refuses a step is never taken for the answer of the operation.
 *
 * Crash points, each with a test: before the step's claim (nothing is known of it), claimed, after its effect (it lapses, and is
 * waited for that long), completed, between two steps (it is replayed). Interleavings that have one: the work is taken over while
 * a step runs, and the step ends later, or never, or lapses and is done twice; the work is taken over, or ends, while its step is
 * being claimed; the work fails and comes again with other input; the process closes between two steps.
 */
import type { Awaitable } from "./awaitable.js";
import type { Call, Ended } from "./call.js";
import type { Engine } from "./engine.js";
import { configurationError, isOncekeyError, OncekeyError } from "./errors.js";
import { encodeDone, outcomeOf, runFunction, type Settled } from "./function-results.js";
import { stepKeyOf } from "./key.js";
import { MAX_STEP_NAME, MAX_STEPS } from "./limits.js";
import { perform } from "./perform.js";
import type { ResolvedPolicy } from "./policy.js";
import type { ClaimRequest } from "./store.js";
import { type Attempted, createWork, type RunStep, type StepWork, type Work } from "./work.js";

/** An answer with a lower status can be the result of an operation, and be kept as such. */
const LEAST_FAULT_STATUS = 500;

type Fn<R> = (work: StepWork) => R | Promise<R>;

/** @param engineOf the engine, which is being put together. */
export function stepRunner(engineOf: () => Engine): RunStep {
  return async (of, names, name, fn) => {
    const problems = stepProblems(names, name, fn);
    if (problems.length > 0) throw configurationError("Step", problems);
    assertGoesOn(of);
    names.add(name);
    try {
      return await (of.protected
        ? runStep(engineOf(), of, name, fn)
        : runUnprotected(engineOf(), of, name, fn));
    } catch (error) {
      // Nothing of it is kept, so it may be tried again.
      names.delete(name);
      throw error;
    }
  };
}

/**
 * A name that is used twice would give one part of the work the result of another, or wait for itself: it is refused, also when
 * the first has ended.
 */
function stepProblems(names: ReadonlySet<string>, name: unknown, fn: unknown): string[] {
  const problems: string[] = [];
  if (typeof name !== "string" || name === "" || name.length > MAX_STEP_NAME) {
    problems.push(`name must be a text of 1 to ${MAX_STEP_NAME} characters`);
  } else if (names.has(name)) {
    problems.push("name is used already in this attempt: give each step of the work a name of its own");
  }
  if (names.size >= MAX_STEPS) problems.push(`name is one too many: work has at most ${MAX_STEPS} steps`);
  if (typeof fn !== "function") problems.push("the step must be a function, the second argument");
  return problems;
}

/** The work has no claim, so its steps have none either; what they give to other services is the same all the same. */
async function runUnprotected<R>(engine: Engine, of: Attempted, name: string, fn: Fn<R>): Promise<R> {
  const claim = { ...of.claim, ...namesOf(of.claim, name) };
  const call = { ...of.call, policy: stepPolicy(engine, of) };
  return fn(createWork<never>(engine.runStep, { ...of, call, claim }, undefined) as StepWork);
}

async function runStep<R>(engine: Engine, of: Attempted, name: string, fn: Fn<R>): Promise<R> {
  const call = stepCall(engine, of, name, fn);
  const performed = await inOwnWords(() => perform(engine, call));
  const outcome = () => outcomeOf<R>({}, performed);
  const isOwn = performed.kind === "executed" || performed.kind === "unprotected";
  // What its function threw is the work's own.
  return (await (isOwn ? outcome() : inOwnWords(outcome))).result;
}

async function inOwnWords<T>(ask: () => Awaitable<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw refusalOf(error);
  }
}

/**
 * "In flight" and "done, not retained" are true of the step and not of the operation: as they are, they would be kept as the
 * answer of a route, or acknowledge a message whose work has not ended.
 */
function refusalOf(error: unknown): unknown {
  if (!isOncekeyError(error) || error.status >= LEAST_FAULT_STATUS) return error;
  const { retryable, retryAfterMs } = error;
  if (retryable) {
    const message = "An earlier attempt of this work may still be in this step. Try the work again later.";
    return new OncekeyError("STEP_IN_FLIGHT", message, { retryAfterMs, cause: error });
  }
  const message = "This step was begun before, and its result cannot be had. The cause says why.";
  return new OncekeyError("STEP_REFUSED", message, { cause: error });
}

function stepCall<R>(engine: Engine, of: Attempted, name: string, fn: Fn<R>): Call<Settled<R>> {
  const { scopeId, label, fingerprint } = of.claim;
  const { key, operation } = namesOf(of.claim, name);
  const policy = stepPolicy(engine, of);
  return {
    identity: { key, scopeId },
    operation,
    label,
    // A key that was freed by a failure can be used for another request, which must not get this one's results.
    fingerprint,
    policy,
    signal: () => of.lease.signal(),
    carrier: of.call.carrier,
    waitMs: undefined,
    commitRepeats: 0,
    part: true,
    run(begun) {
      const lost = lossOf(of);
      return lost ?? runFunction(engine.emit, {}, policy, fn as (work: Work) => R | Promise<R>, begun.work());
    },
    encodeDone: (result) => encodeDone(undefined, policy.maxResultBytes, result),
  };
}

function namesOf({ key, operation }: ClaimRequest, name: string) {
  return { key: stepKeyOf(key, name), operation: `${operation}/${name}` };
}

/** @throws OncekeyError `LEASE_LOST` or `RUN_TOO_LONG` if the work has ended, or has lost its claim. */
function assertGoesOn({ over, lease }: Attempted): void {
  if (over) {
    throw new OncekeyError("LEASE_LOST", "The work has ended, and its claim with it: no step begins.");
  }
  lease.assertHeld();
}

/** That may have happened while the step was being claimed: then nothing of the step does. */
function lossOf(of: Attempted): Extract<Ended<Settled<never>>, { readonly kind: "failed" }> | undefined {
  try {
    assertGoesOn(of);
    return undefined;
  } catch (error) {
    const code = isOncekeyError(error) ? error.code : undefined;
    return { kind: "failed", value: { kind: "threw", error }, code, performed: "no" };
  }
}

/** What the work is promised, for a part of it: it is made once, and whoever runs the work again decides what runs again. */
function stepPolicy({ clock }: Engine, { call, claimedMs }: Attempted): ResolvedPolicy {
  const { policy } = call;
  const strict = policy.guarantee === "at-most-once";
  const ranMs = claimedMs === undefined ? 0 : clock.monotonicMs() - claimedMs;
  const leftMs = Math.max(1, policy.maxRunMs - ranMs);
  return {
    ...policy,
    guarantee: strict ? "at-most-once" : "at-least-once",
    onCompleted: "replay",
    keep: ({ kind }) => kind === "returned",
    // Who is asked about the work speaks of the whole of it, not of a part.
    onLapse: strict ? "hold" : "takeover",
    reconcile: undefined,
    // Nobody waits long who holds up a transaction.
    waitMs: claimedMs === undefined ? policy.waitMs : leftMs,
    onReleased: "takeover",
    maxRunMs: leftMs,
    maxAttempts: undefined,
  };
}
