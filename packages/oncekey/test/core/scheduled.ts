/**
 * @module
 * A line to a store on which fast-check's scheduler decides in which order calls land and are answered, and some are lost.
 */
import fc from "fast-check";
import { afterEach, beforeEach, expect } from "vitest";
import type { Policy } from "../../src/core/policy.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.js";
import { type Interference, leftovers, type Process, startProcess, wire } from "./processes.js";

/** More of them find rarer orders. */
const RUNS = Number(process.env.ONCEKEY_PROPERTY_RUNS ?? 40);

/** Fails the test that leaves a rejection behind which nobody has heard. */
export function noticeUnhandledRejections(): void {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  beforeEach(() => void process.on("unhandledRejection", note));
  afterEach(() => {
    process.off("unhandledRejection", note);
    expect(unhandled.splice(0)).toEqual([]);
  });
}

export type Fault = "none" | "never-arrives" | "answer-lost" | "answer-swallowed" | "silence";

const anyFault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 12, arbitrary: fc.constant("none" as const) },
  { weight: 1, arbitrary: fc.constantFrom("never-arrives" as const, "answer-lost" as const) },
  { weight: 1, arbitrary: fc.constantFrom("answer-swallowed" as const, "silence" as const) },
);

export const anyFaults = fc.array(anyFault, { minLength: 1, maxLength: 30 });

/** As many callers as meet in a case. */
export function severalOf<T>(caller: fc.Arbitrary<T>): fc.Arbitrary<T[]> {
  return fc.array(caller, { minLength: 2, maxLength: 4 });
}

/** The property holds in as many orders as there is time for. */
export function holds<Ts>(property: fc.IAsyncProperty<Ts>): Promise<void> {
  return fc.assert(property, { numRuns: RUNS });
}

/** Processes on one line to a memory store, on which `interference` decides about every call. */
export function processesOn(interference: Interference, count: number, policy: Policy) {
  const clock = manualClock();
  const line = wire(memoryStore({ clock, sweepIntervalMs: 0 }));
  line.all(interference);
  const shared = { acceptsLostWrites: true, ...policy };
  const processes = Array.from({ length: count }, () =>
    startProcess({ store: line.store, clock, policy: shared }),
  );
  return { clock, line, processes };
}

/** Nothing runs, nobody waits. */
export function expectNothingLeft(processes: readonly Process[]): void {
  expect(processes.map(leftovers)).toEqual(processes.map(() => ({ here: 0, waiting: 0 })));
}

/** Stands before the store, and again before the caller, until the scheduler says so. */
export function scheduled(scheduler: fc.Scheduler, faults: readonly Fault[]): Interference {
  let calls = 0;
  return async (_, next) => {
    const fault = faults[calls++ % Math.max(1, faults.length)] ?? "none";
    await scheduler.schedule(Promise.resolve(), `call ${calls} arrives, ${fault}`);
    if (fault === "never-arrives") throw new Error("connection refused");
    if (fault === "silence") return new Promise(() => undefined);
    const answer = await next();
    await scheduler.schedule(Promise.resolve(), "its answer is heard");
    if (fault === "answer-lost") throw new Error("connection reset");
    if (fault === "answer-swallowed") return new Promise(() => undefined);
    return answer;
  };
}

/** Lets all calls through in the scheduler's order and time pass whenever nothing else can happen. */
export async function drain(scheduler: fc.Scheduler, clock: ManualClock, done: () => boolean): Promise<void> {
  for (let idle = 0; idle < 200; ) {
    await clock.settle();
    if (scheduler.count() > 0) {
      await scheduler.waitOne();
      continue;
    }
    if (done()) return;
    idle += 1;
    await clock.advance(500);
  }
}
