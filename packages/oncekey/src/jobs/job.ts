/**
 * @module
 * A job that every instance fires and one runs: what all schedulers share.
 *
 * Invariant: whatever is thrown inside, the scheduler gets a promise that resolves (or, with `onError: "throw"`, one that rejects
 * when an occurrence was given up). Which planned instant a firing is for is said by the scheduler's own file.
 */
import { isOncekeyError } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import type { Calendar } from "./calendar.js";
import { findMissed, type Missed } from "./missed.js";
import {
  type Job,
  type Occurrence,
  type OccurrenceEnd,
  OUTAGE_PAUSE_MS,
  pause,
  performOccurrence,
  report,
} from "./occurrence.js";
import { type JobFunction, type JobSettings, retentionOf, windowOf } from "./options.js";

/** How long it is tried, at the start of an instance, to find out what was left behind. */
const LOOK_BACK_MS = 600_000;

export interface FiredJob {
  readonly settings: JobSettings;
  /** One firing for the occurrence planned for `plannedMs`. */
  fire(plannedMs: number, calendar: Calendar | undefined): Promise<void>;
  /** What was left behind when the instances were down. */
  catchUp(calendar: Calendar): Promise<void>;
  /** A firing that names no occurrence. */
  refuse(error: unknown): Promise<void>;
}

export function createJob(idempotency: Idempotency, settings: JobSettings, run: JobFunction): FiredJob {
  const job: Job = { idempotency, settings, run };
  const { clock } = idempotency.internals;

  async function fireAll(plannedMs: number, calendar: Calendar | undefined): Promise<OccurrenceEnd> {
    const occurrence = occurrenceOf(job, plannedMs, calendar);
    if (settings.missed === "all" && calendar !== undefined) {
      const found = await findMissed(job, calendar, calendar.previousMs(plannedMs - 1), {
        open: false,
      }).catch(nothing);
      await makeUpFor(job, found.missed, calendar);
    }
    if (occurrence.remainingMs > 0) return performOccurrence(job, occurrence);
    // The timer rang too late: the process stood still, or its machine slept.
    if (settings.missed === "none") return report(job, occurrence, { kind: "missed" });
    return performOccurrence(job, madeUpFor(job, plannedMs, calendar));
  }

  async function catchUp(calendar: Calendar): Promise<void> {
    const { open, missed } = await lookBack(job, calendar);
    const subscribed = open.map((plannedMs) =>
      performOccurrence(job, occurrenceOf(job, plannedMs, calendar)),
    );
    const wanted = wantedOf(settings, open, missed);
    for (const plannedMs of missed) {
      if (!wanted.includes(plannedMs)) report(job, { plannedMs }, { kind: "missed" });
    }
    await makeUpFor(job, wanted, calendar);
    await Promise.all(subscribed);
  }

  return {
    settings,
    fire: async (plannedMs, calendar) => throwIfAsked(settings, await fireAll(plannedMs, calendar)),
    catchUp: (calendar) => catchUp(calendar).catch((error) => fail(job, clock.now(), error)),
    refuse: (error) => fail(job, clock.now(), error),
  };
}

/** A store that is cold or down when an instance starts is asked again: what was left behind would be lost otherwise. */
async function lookBack(job: Job, calendar: Calendar): Promise<Missed> {
  const { clock } = job.idempotency.internals;
  const endsAtMs = clock.monotonicMs() + LOOK_BACK_MS;
  for (;;) {
    try {
      return await findMissed(job, calendar, calendar.previousMs(clock.now()), { open: true });
    } catch (error) {
      if (!isOncekeyError(error, "STORE_UNAVAILABLE") || clock.monotonicMs() >= endsAtMs) throw error;
    }
    await pause(clock, OUTAGE_PAUSE_MS);
  }
}

function occurrenceOf(
  { settings, idempotency }: Job,
  plannedMs: number,
  calendar: Calendar | undefined,
): Occurrence {
  const endsAtMs = plannedMs + windowOf(settings, calendar, plannedMs);
  const remainingMs = endsAtMs - idempotency.internals.clock.now();
  return {
    plannedMs,
    remainingMs,
    retentionMs: retentionOf(settings, calendar, plannedMs),
    madeUpFor: false,
  };
}

/** Its window begins now. */
function madeUpFor({ settings }: Job, plannedMs: number, calendar: Calendar | undefined): Occurrence {
  const remainingMs = windowOf(settings, calendar, plannedMs);
  return { plannedMs, remainingMs, retentionMs: retentionOf(settings, calendar, plannedMs), madeUpFor: true };
}

/** In the order in which they were planned, one after the other. */
async function makeUpFor(job: Job, planned: readonly number[], calendar: Calendar): Promise<void> {
  for (const plannedMs of planned) await performOccurrence(job, madeUpFor(job, plannedMs, calendar));
}

/** With `"latest"` a missed occurrence counts for nothing if a later one is under way. */
function wantedOf(
  { missed: which }: JobSettings,
  open: readonly number[],
  missed: readonly number[],
): readonly number[] {
  if (which === "none") return [];
  const latest = missed.at(-1);
  if (which === "all" || latest === undefined) return missed;
  return open.some((plannedMs) => plannedMs > latest) ? [] : [latest];
}

/** The firing itself goes on: the missed ones are looked for again at the next one. */
function nothing(): Missed {
  return { open: [], missed: [] };
}

async function fail(job: Job, plannedMs: number, cause: unknown): Promise<void> {
  throwIfAsked(job.settings, report(job, { plannedMs }, { kind: "given-up", cause, attempt: undefined }));
}

function throwIfAsked({ onError }: JobSettings, end: OccurrenceEnd): void {
  if (onError === "throw" && end.kind === "given-up" && end.cause !== undefined) throw end.cause;
}
