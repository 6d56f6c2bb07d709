/**
 * @module
 * Several instances of an application on one store, each with a wall clock of its own, that fire one job. Time is moved by hand.
 */
import { createIdempotency, type IdempotencyEvent, type Policy } from "oncekey";
import { type JobOptions, type JobWork, oncePerOccurrence, type TimedJob } from "oncekey/jobs";
import { memoryStore } from "oncekey/stores/memory";
import { type ManualClock, manualClock, recordEvents } from "oncekey/testing";
import { type Deferred, deferred, silent, type Wire, wire } from "../core/processes.js";

export const HOUR_MS = 3_600_000;
export const LEASE_MS = 30_000;
/** A planned instant of every schedule here. */
export const START_MS = Date.UTC(2026, 0, 1);

type OccurrenceEvent = Extract<IdempotencyEvent, { readonly type: "occurrence" }>;

/** One start of the job's work, which ends when the test says so. */
interface Start extends Deferred<void> {
  readonly instance: number;
  readonly plannedAt: string;
  readonly work: JobWork;
}

export interface Instance {
  readonly fire: TimedJob;
  readonly wire: Wire;
  readonly events: ReturnType<typeof recordEvents>;
  /** How its occurrences have ended, in order. */
  ends(): readonly OccurrenceEvent["end"][];
  /** From now on nothing that it sends arrives, as if it had been killed. */
  crash(): void;
  close(): Promise<unknown>;
}

export interface InstanceOptions extends Partial<JobOptions<"at-least-once" | "at-most-once">> {
  readonly everyMs?: number;
  /** Of the instance: what routes would have, too. */
  readonly instancePolicy?: Omit<Policy, "guarantee">;
  /** How far its wall clock is off. */
  readonly clockOffMs?: number;
  /** Ends at once, as `run` says, in place of when the test says so. */
  readonly run?: (work: JobWork) => unknown;
}

export interface Fleet {
  readonly clock: ManualClock;
  /** All starts of the work, in order. */
  readonly starts: readonly Start[];
  /** The planned instants of the starts, as hours after the first. */
  hours(): readonly number[];
  start(options?: InstanceOptions): Instance;
}

export function fleet(startsAtMs = START_MS): Fleet {
  const clock = manualClock(startsAtMs);
  const store = memoryStore({ clock, sweepIntervalMs: 0 });
  const starts: Start[] = [];
  let made = 0;

  function start(options: InstanceOptions = {}): Instance {
    const { instancePolicy, clockOffMs = 0, run, everyMs = HOUR_MS, ...jobOptions } = options;
    const instance = made++;
    const line = wire(store);
    const events = recordEvents();
    const idempotency = createIdempotency({
      store: line.store,
      clock: { ...clock, now: () => (clock.now() + clockOffMs) as never },
      onEvent: events.listener,
      leaseMs: LEASE_MS,
      ...instancePolicy,
    });
    const work = (context: JobWork): unknown => {
      const begun = { ...deferred(), instance, plannedAt: context.plannedAt.toISOString(), work: context };
      starts.push(begun);
      if (run === undefined) return begun.promise;
      return run(context);
    };
    const fire = oncePerOccurrence(idempotency, { job: "report", everyMs, ...jobOptions }, work);
    return {
      fire,
      wire: line,
      events,
      ends: () => events.of("occurrence").map(({ end }) => end),
      crash: () => line.all(silent),
      close: () => idempotency.close({ graceMs: 1 }),
    };
  }

  const hours = () => starts.map(({ plannedAt }) => (Date.parse(plannedAt) - START_MS) / HOUR_MS);
  return { clock, starts, hours, start };
}
