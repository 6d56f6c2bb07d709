/**
 * @module
 * Jobs of croner (10 or later): `new Cron("0 3 * * *", { timezone: "Europe/Berlin" }, oncePerOccurrence(…))`.
 *
 * The planned instant is the latest of croner's own calendar; when croner says that it runs, it gives the time of the call, which
 * differs between instances. What it means is left to `occurrence.ts`.
 */
import { configurationError } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import type { Guarantee } from "../core/record.js";
import type { GuaranteeOf } from "../core/work.js";
import { type CronCalendar, calendarOfCron } from "./calendar.js";
import { createJob } from "./job.js";
import { type JobFunction, type JobOptions, jobSettings } from "./options.js";

export type { FailedOccurrence, JobFunction, JobOptions, JobWork } from "./options.js";

/** What is needed of a `Cron`. */
export interface CronLike extends CronCalendar {
  readonly options?: { readonly interval?: number | undefined };
}

/** Give it to `Cron` as its function. It never rejects, unless `onError` is `"throw"`. */
export interface CronerJob {
  (self: CronLike): Promise<void>;
  /** Call it once after the start: takes up what instances before have left behind, as `missed` says. */
  catchUp(cron: CronLike): Promise<void>;
}

/**
 * Makes a job of croner run once for each planned instant, however many instances fire it.
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
  options: JobOptions<H>,
  run: JobFunction<Tx, NoInfer<H>, Held>,
): CronerJob {
  const instance = idempotency as unknown as Idempotency;
  const job = createJob(instance, jobSettings(instance, options, run), run as JobFunction);

  async function fired(self: CronLike): Promise<void> {
    const calendar = calendarOfCron(self);
    const plannedMs = calendar.previousMs(instance.internals.clock.now());
    const problem = problemOf(self, plannedMs);
    if (problem !== undefined) return job.refuse(configurationError("Schedule", [problem]));
    return job.fire(plannedMs as number, calendar);
  }

  return Object.assign(fired, { catchUp: (cron: CronLike) => job.catchUp(calendarOfCron(cron)) });
}

/** Why its instances could not agree on a planned instant. */
function problemOf({ options = {} }: CronLike, plannedMs: number | undefined): string | undefined {
  if (options.interval) {
    return "interval counts from a run of one process, not from the schedule: say it in the pattern";
  }
  return plannedMs === undefined
    ? "nothing was planned before now: to run it by hand, call its work"
    : undefined;
}
