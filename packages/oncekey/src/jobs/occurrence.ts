/**
 * @module
 * One occurrence of a job, from the side of one of the instances that it was fired on. The one place that decides about jobs.
 *
 * All instances fire; the key is the planned instant, so one of them gets the claim. The others stay subscribed: to its
 * completion, after which there is nothing to do; to its lapse, after which one of them runs it again; to its failure, after which
 * the pause is counted from what is on record, and one of them tries again. When the window has ended, nobody starts it any more.
 *
 * Invariants: of all attempts that start, each has the claim; none starts after the window; the number of them is bounded
 * (`maxAttempts`, counted by the record, crashes included); nothing is thrown, every end is told. When a firing is for which planned
 * instant is left to `calendar.ts` and the adapters; which missed ones are made up for, to `missed.ts`.
 *
 * Crash points, each with a test: before the claim (another gets it) · claimed, before the work (its lease lapses) · in the work · after
 * the effect, before the completion (it runs again: at-least-once) · after the completion (nobody runs it) · in the pause after a failure
 * (the others count the same pause) · with the job's turn (`overlap.ts`) claimed and the occurrence not done.
 */
import type { Clock } from "../core/clock.js";
import { isOncekeyError, notPerformed, unreachable } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import { GLOBAL_SCOPE } from "../core/key.js";
import { dropped } from "../core/promises.js";
import type { RecordInfo } from "../core/record.js";
import { attemptsExhausted } from "../core/refusals.js";
import type { RunOptions } from "../core/run.js";
import type { Work } from "../core/work.js";
import { type JobFunction, type JobSettings, type JobWork, MAX_RETRY_DELAY_MS } from "./options.js";
import { createTurn } from "./overlap.js";

export interface Job {
  readonly idempotency: Idempotency;
  readonly settings: JobSettings;
  readonly run: JobFunction;
}

/** One firing, as one instance sees it. */
export interface Occurrence {
  readonly plannedMs: number;
  /** How long from now on an attempt may start. */
  readonly remainingMs: number;
  readonly retentionMs: number;
  /** It is made up for: then it waits for its turn, whatever `overlap` says. */
  readonly madeUpFor: boolean;
}

/**
 * - `executed`: here. `elsewhere`: by another instance, or before.
 * - `skipped`: an earlier occurrence was still running.
 * - `in-flight`: another instance still runs it, and its window has ended: nobody would start it again.
 * - `given-up`: for this instance; `cause` says why, as far as it knows.
 * - `missed`: it was planned while no instance was up, or fired after its window, and is not made up for.
 * - `closing`: this process is shutting down; the others are still subscribed.
 */
export type OccurrenceEnd =
  | { readonly kind: "executed" | "elsewhere" | "skipped" | "in-flight" | "missed" | "closing" }
  | { readonly kind: "given-up"; readonly cause: unknown; readonly attempt: number | undefined };

/** What one try has come to. */
type Round =
  | { readonly kind: "ended"; readonly end: OccurrenceEnd }
  /** `seen`: the attempts whose ends this instance has heard of. */
  | { readonly kind: "again"; readonly afterMs: number; readonly cause: unknown; readonly seen: number };

/** What the record keeps of an occurrence, for those who are subscribed. */
type Verdict = "ran" | "skipped";

/** The work's own error, told apart from a refusal of ours: it may be one of ours, too. */
interface Failure {
  readonly error: unknown;
  readonly attempt: number;
}

/** Between two looks at a record that is changing. */
const LOOK_AGAIN_MS = 100;
/** Between two tries while the store does not answer. */
export const OUTAGE_PAUSE_MS = 1_000;

function operationOf({ job }: JobSettings): string {
  return `job ${job}`;
}

/** Names the record of an occurrence. */
export function recordOf(settings: JobSettings, plannedMs: number) {
  return { operation: operationOf(settings), key: new Date(plannedMs), scope: GLOBAL_SCOPE } as const;
}

/** Sees one occurrence to its end, as far as this instance is concerned, and tells it. Never rejects. */
export async function performOccurrence(job: Job, occurrence: Occurrence): Promise<OccurrenceEnd> {
  const { clock } = job.idempotency.internals;
  const endsAtMs = clock.monotonicMs() + occurrence.remainingMs;
  const remainingMs = () => Math.max(0, endsAtMs - clock.monotonicMs());
  let cause: unknown;
  let seen = 0;
  while (remainingMs() > 0) {
    const round = await tryOnce(job, occurrence, remainingMs, seen);
    if (round.kind === "ended") return report(job, occurrence, round.end);
    cause = round.cause;
    seen = Math.max(seen, round.seen);
    await pause(clock, Math.min(round.afterMs, remainingMs()));
  }
  return report(job, occurrence, endOfWindow(cause));
}

/** @param seen the attempts whose ends this instance has heard of. */
async function tryOnce(
  job: Job,
  occurrence: Occurrence,
  remainingMs: () => number,
  seen: number,
): Promise<Round> {
  const { settings, idempotency } = job;
  const turn = createTurn(idempotency, settings);
  let failure: Failure | undefined;
  let begun = 0;
  const work = async (context: Work): Promise<Verdict> => {
    begun = context.attempt;
    await keepPause(job, context, seen, remainingMs);
    if ((await turn.take(waitForTurn(settings, occurrence, context.attempt, remainingMs()))) === "taken") {
      return "skipped";
    }
    try {
      await job.run(jobWork(context, occurrence.plannedMs));
    } catch (error) {
      failure = { error, attempt: context.attempt };
      throw error;
    }
    return "ran";
  };
  try {
    const options = runOptions(settings, occurrence, remainingMs());
    const outcome = await idempotency.runWithOutcome<Verdict>(options, work as never);
    if (outcome.result === "skipped") return ended("skipped");
    return ended(outcome.kind === "replayed" ? "elsewhere" : "executed");
  } catch (error) {
    return failure === undefined
      ? await afterRefusal(job, occurrence, error, begun)
      : afterFailure(job, occurrence, failure);
  } finally {
    await turn.giveBack();
  }
}

function runOptions(settings: JobSettings, occurrence: Occurrence, remainingMs: number) {
  return {
    ...recordOf(settings, occurrence.plannedMs),
    fingerprint: "off",
    ...settings.policy,
    // Somebody said by hand that it is done.
    onTombstone: () => "ran" as const,
    retentionMs: occurrence.retentionMs,
    // Whoever waits is told of a failure and of a lapse, and decides here when to try again.
    onInFlight: { waitMs: remainingMs, onReleased: "refuse" },
  } as const satisfies RunOptions<Verdict>;
}

/**
 * Whoever waits for the same pause claims at the same moment; an attempt that fails at once would be followed by the next one's
 * without any. So who gets a later attempt than it knows of keeps the pause under its claim.
 */
async function keepPause(
  { settings, idempotency }: Job,
  { attempt }: Work,
  seen: number,
  remainingMs: () => number,
): Promise<void> {
  if (attempt <= seen + 1) return;
  await pause(idempotency.internals.clock, Math.min(delayAfter(settings, attempt - 1), remainingMs()));
  if (remainingMs() === 0) throw notPerformed("The window of the occurrence has ended.");
}

/**
 * How long to wait while another occurrence has the job's turn. What has been started once is not left out any more: it may meet its
 * own former attempt, which has crashed and whose turn lapses, or a later occurrence that was quicker.
 */
function waitForTurn(settings: JobSettings, occurrence: Occurrence, attempt: number, remainingMs: number) {
  const { overlap } = settings;
  if (overlap === "allow") return "no-turn";
  const waits = overlap === "queue" || occurrence.madeUpFor || attempt > 1;
  return { waitMs: waits ? remainingMs : 0, otherwise: waits ? "give-up" : "skip" } as const;
}

/** The work's members stay what they are (its signal is made when it is asked for). */
function jobWork(work: Work, plannedMs: number): JobWork {
  const members = Object.getOwnPropertyDescriptors(work);
  const plannedAt = { value: new Date(plannedMs), enumerable: true };
  return Object.create(Object.getPrototypeOf(work), { ...members, plannedAt }) as JobWork;
}

function ended(kind: Exclude<OccurrenceEnd["kind"], "given-up">): Round {
  return { kind: "ended", end: { kind } };
}

function givenUp(cause: unknown, attempt?: number): Round {
  return { kind: "ended", end: { kind: "given-up", cause, attempt } };
}

/** The work threw here: the others are told of it by the record, and count the same pause. */
function afterFailure({ settings }: Job, occurrence: Occurrence, { error, attempt }: Failure): Round {
  if (attempt >= settings.maxAttempts) return givenUp(error, attempt);
  tell(settings, error, occurrence, attempt, false);
  return { kind: "again", afterMs: delayAfter(settings, attempt), cause: error, seen: attempt };
}

/** @param begun the attempt that had been claimed here, if one had: its turn was not to be had, or its commit was refused. */
async function afterRefusal(job: Job, occurrence: Occurrence, error: unknown, begun: number): Promise<Round> {
  const code = isOncekeyError(error) ? error.code : undefined;
  if (code === "CLOSING") return ended("closing");
  if (code === "ATTEMPT_FAILED") return afterFailureElsewhere(job, occurrence, error);
  if (isOncekeyError(error) && !error.retryable) return givenUp(error);
  const afterMs = code === "IN_FLIGHT" ? LOOK_AGAIN_MS : OUTAGE_PAUSE_MS;
  return { kind: "again", afterMs, cause: error, seen: begun };
}

/** Another instance's attempt has failed or lapsed. The pause after a failure counts from when it was put on record. */
async function afterFailureElsewhere(job: Job, occurrence: Occurrence, cause: unknown): Promise<Round> {
  const { settings, idempotency } = job;
  const again = (afterMs: number, seen = 0): Round => ({
    kind: "again",
    afterMs: Math.max(0, afterMs),
    cause,
    seen,
  });
  let record: RecordInfo | undefined;
  try {
    record = await idempotency.find(recordOf(settings, occurrence.plannedMs));
  } catch {
    return again(OUTAGE_PAUSE_MS);
  }
  switch (record?.state) {
    case undefined:
      return again(LOOK_AGAIN_MS);
    case "released":
      if (record.attempt >= settings.maxAttempts) return givenUp(attemptsExhausted(record.attempt));
      return again(delayAfter(settings, record.attempt) - record.inStateMs, record.attempt);
    case "claimed":
      return again(0, record.lapsed ? record.attempt : record.attempt - 1);
    case "completed":
    case "unknown":
      return again(0);
    default:
      return unreachable(record?.state as never);
  }
}

function delayAfter({ retryDelayMs }: JobSettings, attempt: number): number {
  return Math.min(retryDelayMs * 2 ** (attempt - 1), MAX_RETRY_DELAY_MS);
}

/** What is still running elsewhere when the window ends is nobody's failure. */
function endOfWindow(cause: unknown): OccurrenceEnd {
  return isOncekeyError(cause, "IN_FLIGHT")
    ? { kind: "in-flight" }
    : { kind: "given-up", cause, attempt: undefined };
}

/** Tells how an occurrence has ended for this instance. */
export function report(
  job: Job,
  occurrence: Pick<Occurrence, "plannedMs">,
  end: OccurrenceEnd,
): OccurrenceEnd {
  const { settings, idempotency } = job;
  const cause = end.kind === "given-up" ? end.cause : undefined;
  idempotency.internals.emit({
    type: "occurrence",
    operation: operationOf(settings),
    plannedAtMs: occurrence.plannedMs,
    end: end.kind,
    cause,
  });
  if (end.kind === "given-up") tell(settings, cause, occurrence, end.attempt, true);
  return end;
}

/** A listener's fault must not become the scheduler's. */
function tell(
  { job, onError }: JobSettings,
  error: unknown,
  { plannedMs }: Pick<Occurrence, "plannedMs">,
  attempt: number | undefined,
  isGivenUp: boolean,
): void {
  if (typeof onError !== "function") return;
  try {
    dropped(onError(error, { job, plannedAt: new Date(plannedMs), attempt, givenUp: isGivenUp }));
  } catch {
    // Told is told.
  }
}

export function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(resolve, ms, false);
  });
}
