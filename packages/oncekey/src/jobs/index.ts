/**
 * @module
 * Jobs of schedulers that pass nothing: a plain timer, a method under `@nestjs/schedule`, a systemd timer that calls an endpoint.
 *
 * The planned instant is computed from the schedule in the options and the time of the call, with a tolerance for timers that fire
 * early. What it means is left to `occurrence.ts`.
 */
import { configurationError } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import { collectProblems, durationProblems } from "../core/policy-checks.js";
import type { Guarantee } from "../core/record.js";
import type { GuaranteeOf } from "../core/work.js";
import {
  type Calendar,
  type CronClass,
  calendarOfExpression,
  calendarOfPeriod,
  type Fired,
  plannedNear,
} from "./calendar.js";
import { createJob } from "./job.js";
import { type JobFunction, type JobOptions, jobSettings } from "./options.js";

export type { CronCalendar, CronClass } from "./calendar.js";
export type { FailedOccurrence, JobFunction, JobOptions, JobWork } from "./options.js";

interface Periodic {
  /** The timer's period. Planned instants are its multiples since 1970-01-01T00:00Z, whenever a process was started. */
  readonly everyMs: number;
}

interface Cronlike {
  /** The cron expression that the scheduler has. */
  readonly schedule: string;
  /** The time zone that it has: instances whose own differ would fire for different instants. */
  readonly timeZone: string;
  /** croner's `Cron` (10 or later), whose calendar it is. */
  readonly Cron: CronClass;
}

export type ScheduleOptions = (Periodic | Cronlike) & {
  /** What fires at most this long before a planned instant is for that one. @defaultValue 1 000 */
  readonly toleranceMs?: number | undefined;
};

/** Call it whenever the schedule fires. It never rejects, unless `onError` is `"throw"`. */
export interface TimedJob {
  (): Promise<void>;
  /** Call it once after the start: takes up what instances before have left behind, as `missed` says. */
  catchUp(): Promise<void>;
}

const TOLERANCE_MS = 1_000;
const OWN_NAMES = ["everyMs", "schedule", "timeZone", "Cron", "toleranceMs"];

/**
 * Makes a job run once for each planned instant, however many instances fire it.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with every problem; `GUARANTEE_UNSUPPORTED`.
 */
export function oncePerOccurrence<
  Tx,
  G extends Guarantee,
  Held,
  const H extends GuaranteeOf<Tx> = G & GuaranteeOf<Tx>,
>(
  idempotency: Idempotency<Tx, G, boolean, Held>,
  options: JobOptions<H> & ScheduleOptions,
  run: JobFunction<Tx, NoInfer<H>, Held>,
): TimedJob {
  const instance = idempotency as unknown as Idempotency;
  const { toleranceMs = TOLERANCE_MS } = options;
  const problems = durationProblems("toleranceMs", toleranceMs, 0);
  const calendar = collectProblems(problems, () => calendarOf(options));
  const settings = jobSettings(instance, options, run, { names: OWN_NAMES, problems });
  if (calendar === undefined) throw configurationError("Job", problems);
  const job = createJob(instance, settings, run as JobFunction);
  const { clock } = instance.internals;
  let last: Fired | undefined;

  function fired(): Promise<void> {
    const atMs = clock.now();
    const plannedMs = plannedNear(calendar as Calendar, atMs, toleranceMs, last);
    if (plannedMs === undefined) {
      return job.refuse(configurationError("Schedule", ["nothing was planned before now"]));
    }
    last = { plannedMs, atMs };
    return job.fire(plannedMs, calendar);
  }

  return Object.assign(fired, { catchUp: () => job.catchUp(calendar) });
}

/** @throws OncekeyError `CONFIGURATION_INVALID`. */
function calendarOf(options: Partial<Periodic & Cronlike>): Calendar {
  const { everyMs, schedule, timeZone, Cron } = options ?? {};
  if (everyMs !== undefined) {
    const problems = durationProblems("everyMs", everyMs);
    if (schedule !== undefined) problems.push("everyMs and schedule are two schedules: give one");
    if (problems.length > 0) throw configurationError("Schedule", problems);
    return calendarOfPeriod(everyMs);
  }
  const problems = typeof schedule === "string" ? [] : ["everyMs or schedule must say when it fires"];
  if (typeof timeZone !== "string") problems.push('timeZone must name one, such as "Europe/Berlin" or "UTC"');
  if (typeof Cron !== "function") problems.push("Cron must be the class of croner, which reads the schedule");
  if (problems.length > 0 || Cron === undefined || schedule === undefined) {
    throw configurationError("Schedule", problems);
  }
  try {
    return calendarOfExpression(Cron, schedule, timeZone);
  } catch (error) {
    throw configurationError("Schedule", [`schedule cannot be read: ${(error as Error).message}`]);
  }
}
