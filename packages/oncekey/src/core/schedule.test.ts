import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ManualClock, manualClock } from "../testing/manual-clock.js";
import { type Alarm, createSchedule } from "./schedule.js";

/** Notes what rings, and when. */
function noting(clock: ManualClock) {
  const rung: [string, number][] = [];
  return { rung, ring: (name: string) => () => void rung.push([name, clock.monotonicMs()]) };
}

const anyStep = fc.record({
  kind: fc.constantFrom("set" as const, "cancel" as const, "pass" as const),
  value: fc.nat(12),
});

interface Tried {
  readonly dueMs: number;
  readonly rungMs: number[];
  readonly alarm: Alarm;
  cancelled: boolean;
}

/** A schedule whose alarms note when they rang, and whether they were cancelled before. */
function tried(clock: ManualClock, keepAlive: boolean) {
  const schedule = createSchedule(clock, keepAlive);
  const alarms: Tried[] = [];
  return {
    alarms,
    set(delayMs: number): void {
      const rungMs: number[] = [];
      const alarm = schedule.after(delayMs, () => void rungMs.push(clock.monotonicMs()));
      alarms.push({ dueMs: clock.monotonicMs() + delayMs, rungMs, alarm, cancelled: false });
    },
    cancel(index: number): void {
      const one = alarms[index];
      one?.alarm.cancel();
      if (one?.rungMs.length === 0) one.cancelled = true;
    },
  };
}

for (const keepAlive of [true, false]) {
  describe(`a schedule that ${keepAlive ? "keeps" : "does not keep"} the process alive`, () => {
    it("rings each alarm once, at its time, in order, with one timer per delay", async () => {
      const clock = manualClock();
      const schedule = createSchedule(clock, keepAlive);
      const { rung, ring } = noting(clock);
      schedule.after(10, ring("a"));
      await clock.advance(4);
      schedule.after(10, ring("b"));
      schedule.after(3, ring("c"));
      expect(clock.pending()).toBe(2);
      await clock.advance(100);
      expect(rung).toEqual([
        ["c", 7],
        ["a", 10],
        ["b", 14],
      ]);
      expect(clock.pending()).toBe(0);
    });

    it("does not ring what was cancelled, also twice, also by an alarm that rings at the same time", async () => {
      const clock = manualClock();
      const schedule = createSchedule(clock, keepAlive);
      const { rung, ring } = noting(clock);
      const second = schedule.after(10, ring("never"));
      schedule.after(10, () => {
        third.cancel();
        ring("b")();
      });
      const third = schedule.after(10, ring("never"));
      second.cancel();
      second.cancel();
      schedule.after(10, ring("d"));
      await clock.advance(10);
      expect(rung).toEqual([
        ["b", 10],
        ["d", 10],
      ]);
      third.cancel();
    });

    it("takes alarms that are set while others ring", async () => {
      const clock = manualClock();
      const schedule = createSchedule(clock, keepAlive);
      const { rung, ring } = noting(clock);
      schedule.after(10, () => {
        ring("a")();
        schedule.after(10, ring("again"));
        schedule.after(0, ring("at once"));
      });
      await clock.advance(30);
      expect(rung).toEqual([
        ["a", 10],
        ["at once", 10],
        ["again", 20],
      ]);
    });

    it("rings exactly what was not cancelled, never early, whatever is set and cancelled when", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(anyStep, { maxLength: 40 }), async (steps) => {
          const clock = manualClock();
          const { alarms, set, cancel } = tried(clock, keepAlive);
          const act = { set, cancel, pass: clock.advance };
          for (const { kind, value } of steps) await act[kind](value);
          await clock.advance(20);
          for (const { dueMs, rungMs, cancelled } of alarms) expect(rungMs).toEqual(cancelled ? [] : [dueMs]);
          expect(clock.pending()).toBe(0);
        }),
        { numRuns: 60 },
      );
    });
  });
}

it("holds the process alive with no timer once nothing is to ring", () => {
  const clock = manualClock();
  const schedule = createSchedule(clock, true);
  const alarms = [1, 1, 2].map((delayMs) => schedule.after(delayMs, () => undefined));
  for (const alarm of alarms) alarm.cancel();
  expect(clock.pending()).toBe(0);
});
