/**
 * @module
 * Jobs of node-cron (4 or later): `cron.schedule("0 3 * * *", oncePerOccurrence(…), { timezone: "Europe/Berlin" })`.
 *
 * The planned instant is what node-cron passes. It can tell when it fires next, and not when it should have fired, so missed
 * occurrences are found with croner's calendar, and only those count that node-cron would have fired. What it all means is left
 * to `occurrence.ts`.
 */
import type { Idempotency } from "../core/idempotency.js";
import { functionProblems } from "../core/policy-checks.js";
import type { Guarantee } from "../core/record.js";
import type { GuaranteeOf } from "../core/work.js";
import { type Calendar, type CronClass, calendarOfExpression } from "./calendar.js";
import { createJob } from "./job.js";
import { type JobFunction, type JobOptions, jobSettings } from "./options.js";

export type { CronClass } from "./calendar.js";
export type { FailedOccurrence, JobFunction, JobOptions, JobWork } from "./options.js";

/** What is needed of node-cron's `ScheduledTask`. */
export interface TaskLike {
  getPattern(): string;
  getNextRuns(count: number): Date[];
  match(date: Date): boolean;
}

/** What node-cron passes: `date` is the planned instant. */
export interface TaskContextLike {
  readonly date: Date;
  readonly task?: TaskLike | undefined;
}

export interface NodeCronOptions<H extends Guarantee = Guarantee> extends JobOptions<H> {
  /** croner's `Cron`, for `missed`: what `catchUp` looks back with. */
  readonly Cron?: CronClass | undefined;
  /** The one that the task is scheduled in. @defaultValue that of this process, as node-cron has it */
  readonly timeZone?: string | undefined;
}

/** Give it to `schedule` as its function. It never rejects, unless `onError` is `"throw"`. */
export interface NodeCronJob {
  (context: TaskContextLike): Promise<void>;
  /** Call it once after the start: takes up what instances before have left behind, as `missed` says. Needs `Cron`. */
  catchUp(task: TaskLike): Promise<void>;
}

/**
 * Makes a task of node-cron run once for each planned instant, however many instances fire it.
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
  options: NodeCronOptions<H>,
  run: JobFunction<Tx, NoInfer<H>, Held>,
): NodeCronJob {
  const instance = idempotency as unknown as Idempotency;
  const { Cron, timeZone, missed = "none" } = options;
  const names = ["Cron", "timeZone"];
  const problems = functionProblems("Cron", Cron);
  if (missed !== "none" && Cron === undefined) {
    problems.push("missed needs Cron, the class of croner: node-cron cannot tell when it should have fired");
  }
  const job = createJob(
    instance,
    jobSettings(instance, options, run, { names, problems }),
    run as JobFunction,
  );
  const calendarOf = (task: TaskLike): Calendar =>
    Cron === undefined ? onlyNext(task) : lookingBack(task, Cron, timeZone);

  const fired = ({ date, task }: TaskContextLike): Promise<void> =>
    job.fire(date.getTime(), task === undefined ? undefined : calendarOf(task));
  return Object.assign(fired, { catchUp: (task: TaskLike) => job.catchUp(calendarOf(task)) });
}

/** The next firing from now on, which is what a window needs. */
function onlyNext(task: TaskLike): Calendar {
  return { previousMs: () => undefined, nextMs: () => task.getNextRuns(1)[0]?.getTime() };
}

/** Expressions can mean more in one scheduler than in the other: a gap of this many is taken for the end. */
const MAX_APART = 1_000;

/** croner's calendar, without what node-cron would not have fired (a time of day that a day did not have, say). */
function lookingBack(task: TaskLike, Cron: CronClass, timeZone: string | undefined): Calendar {
  const whole = calendarOfExpression(Cron, task.getPattern(), timeZone);
  const first = (step: (atMs: number) => number | undefined, fromMs: number): number | undefined => {
    let atMs = step(fromMs);
    for (let looked = 0; atMs !== undefined && looked < MAX_APART; looked++) {
      if (task.match(new Date(atMs))) return atMs;
      atMs = step(atMs);
    }
    return undefined;
  };
  return {
    previousMs: (atMs) => first((from) => whole.previousMs(from - 1), atMs + 1),
    nextMs: (atMs) => first(whole.nextMs, atMs),
  };
}
