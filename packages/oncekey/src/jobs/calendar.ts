/**
 * @module
 * When a schedule fires, as instants in UTC.
 *
 * Invariant: no calendar is computed here. What a cron expression means, in which time zone and on the days when clocks change,
 * is the scheduler's own answer; only a plain period is counted, from 1970-01-01T00:00Z, so that all processes count alike.
 */

export interface Calendar {
  /** The latest planned instant at or before `atMs`. */
  previousMs(atMs: number): number | undefined;
  /** The first planned instant after `atMs`. */
  nextMs(atMs: number): number | undefined;
}

/** What is needed of croner's `Cron` (10 or later): its calendar, in both directions. A paused one will do. */
export interface CronCalendar {
  nextRuns(count: number, after?: Date): Date[];
  previousRuns(count: number, before?: Date): Date[];
}

/** croner's class, given by whoever has it. */
export type CronClass = new (pattern: string, options: { paused: true; timezone?: string }) => CronCalendar;

/** What `expression` means to croner. @throws what croner does of an expression that it cannot read. */
export function calendarOfExpression(Cron: CronClass, expression: string, timeZone?: string): Calendar {
  return calendarOfCron(
    new Cron(expression, { paused: true, ...(timeZone !== undefined && { timezone: timeZone }) }),
  );
}

/** The calendar of a `Cron`. `previousRuns` leaves out its reference, so it is asked a millisecond later. */
export function calendarOfCron(cron: CronCalendar): Calendar {
  return {
    previousMs: (atMs) => cron.previousRuns(1, new Date(atMs + 1))[0]?.getTime(),
    nextMs: (atMs) => cron.nextRuns(1, new Date(atMs))[0]?.getTime(),
  };
}

/** Multiples of `everyMs` since 1970-01-01T00:00Z. */
export function calendarOfPeriod(everyMs: number): Calendar {
  const previousMs = (atMs: number) => Math.floor(atMs / everyMs) * everyMs;
  return { previousMs, nextMs: (atMs) => previousMs(atMs) + everyMs };
}

/** A firing before, of the same job in this process. */
export interface Fired {
  readonly plannedMs: number;
  readonly atMs: number;
}

/**
 * The planned instant that a firing at `nowMs` is for, where the scheduler does not say. Timers fire a little early, and clocks
 * differ: what comes at most `toleranceMs` (and a quarter of the way) before a planned instant is for that one.
 *
 * @param last the firing before. A timer that has the schedule's period may ring anywhere in it; if that is just where an instant
 * turns into the next one, it would ring twice for one and never for another. So what rings for the same instant again, half a
 * period or more after the last time and at most half a period before the next instant, is for the next.
 */
export function plannedNear(
  calendar: Calendar,
  nowMs: number,
  toleranceMs: number,
  last?: Fired,
): number | undefined {
  const previousMs = calendar.previousMs(nowMs);
  const nextMs = calendar.nextMs(nowMs);
  if (previousMs === undefined || nextMs === undefined) {
    return nextMs !== undefined && nextMs - nowMs <= toleranceMs ? nextMs : previousMs;
  }
  const gapMs = nextMs - previousMs;
  const isAgain = last?.plannedMs === previousMs && nowMs - last.atMs >= gapMs / 2;
  const earlyMs = isAgain ? gapMs / 2 : Math.min(toleranceMs, gapMs / 4);
  return nextMs - nowMs <= earlyMs ? nextMs : previousMs;
}
