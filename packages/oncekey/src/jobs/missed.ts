/**
 * @module
 * Which occurrences were planned while no instance was up.
 *
 * The schedule's own calendar is walked back from now to the last occurrence that has ended; what has no record in between was
 * missed. Whoever looks at the same time finds the same: the claim decides who runs what.
 *
 * Invariants: without a sign of an earlier occurrence nothing counts as missed (the job is new, or everything was forgotten), and
 * nothing that may have been forgotten does: what is older than the retention could have been completed. At most `maxMissed`
 * planned instants, the latest ones, are made up for.
 */
import { unreachable } from "../core/errors.js";
import type { Calendar } from "./calendar.js";
import { type Job, recordOf } from "./occurrence.js";
import { CLOCK_MARGIN_MS, retentionOf, windowOf } from "./options.js";

export interface Missed {
  /** Started and not ended, and their window has not ended either: to be subscribed to again. Oldest first. */
  readonly open: readonly number[];
  /** No attempt is under way, and none would start by itself. Oldest first. */
  readonly missed: readonly number[];
}

/** What the walk back has met, newest first. */
interface Walk {
  readonly open: number[];
  readonly absent: number[];
  readonly crashed: number[];
  /** An occurrence that has ended was met: the job is older than those before it. */
  hasEnded: boolean;
}

/**
 * Looks from the planned instant `fromMs` back: to the last occurrence that has ended, if missed ones are to be found, and as far as
 * windows reach, if open ones are: what crashed may lie behind what was left out because of it.
 *
 * @throws OncekeyError `STORE_UNAVAILABLE`.
 */
export async function findMissed(
  job: Job,
  calendar: Calendar,
  fromMs: number | undefined,
  find: { readonly open: boolean },
): Promise<Missed> {
  const { missed: which, maxMissed } = job.settings;
  const walk: Walk = { open: [], absent: [], crashed: [], hasEnded: false };
  let atMs = fromMs;
  for (let looked = 0; looked < maxMissed && isRemembered(job, calendar, atMs); looked++) {
    const isOpen = isInWindow(job, calendar, atMs);
    if (!(find.open && isOpen) && (which === "none" || walk.hasEnded)) break;
    await lookAt(job, atMs, isOpen, walk);
    atMs = calendar.previousMs(atMs - 1);
  }
  const { open, absent, crashed } = walk;
  const isOld = walk.hasEnded || (which !== "none" && (await existedBefore(job, calendar, atMs)));
  const missed = isOld ? [...absent, ...crashed] : crashed;
  return { open: open.sort(ascending), missed: missed.sort(ascending) };
}

async function lookAt(
  { idempotency, settings }: Job,
  atMs: number,
  isOpen: boolean,
  walk: Walk,
): Promise<void> {
  const record = await idempotency.find(recordOf(settings, atMs));
  switch (record?.state) {
    case undefined:
      // Behind one that has ended it was not missed now: it was not made up for then.
      if (!walk.hasEnded) walk.absent.push(atMs);
      return;
    case "claimed":
      if (isOpen) walk.open.push(atMs);
      else if (record?.lapsed === true) walk.crashed.push(atMs);
      return;
    case "released":
      if (isOpen) walk.open.push(atMs);
      walk.hasEnded = true;
      return;
    case "completed":
    case "unknown":
      walk.hasEnded = true;
      return;
    default:
      return unreachable(record?.state as never);
  }
}

function isInWindow({ idempotency, settings }: Job, calendar: Calendar, atMs: number): boolean {
  return idempotency.internals.clock.now() < atMs + windowOf(settings, calendar, atMs);
}

/** Whether an occurrence planned for `atMs` that has ended would still have its record. */
function isRemembered(
  { idempotency, settings }: Job,
  calendar: Calendar,
  atMs: number | undefined,
): atMs is number {
  if (atMs === undefined) return false;
  const retentionMs = retentionOf(settings, calendar, atMs);
  const marginMs = Math.min(CLOCK_MARGIN_MS, retentionMs / 4);
  return idempotency.internals.clock.now() - atMs < retentionMs - marginMs;
}

/** Each look goes this much further back than the one before. */
const STRIDE = 1.25;

/**
 * Looks for a sign that the job is older than what was looked at, ever further apart: an outage may be long, and the schedule dense.
 * It is found for certain if the job had been up for a quarter as long as it then was down.
 */
async function existedBefore(job: Job, calendar: Calendar, fromMs: number | undefined): Promise<boolean> {
  const { idempotency, settings } = job;
  const nowMs = idempotency.internals.clock.now();
  let atMs = fromMs;
  while (isRemembered(job, calendar, atMs)) {
    if ((await idempotency.find(recordOf(settings, atMs))) !== undefined) return true;
    // At least one planned instant further, also where they lie far apart.
    atMs = calendar.previousMs(Math.min(nowMs - STRIDE * (nowMs - atMs), atMs - 1));
  }
  return false;
}

function ascending(a: number, b: number): number {
  return a - b;
}
