import { describe, expect, it } from "vitest";
import { calendarOfPeriod, type Fired, plannedNear } from "./calendar.js";

const MINUTE = 60_000;
const minutes = calendarOfPeriod(MINUTE);

describe("a period", () => {
  it("has its planned instants at multiples since 1970, so that all processes count alike", () => {
    expect(minutes.previousMs(3 * MINUTE)).toBe(3 * MINUTE);
    expect(minutes.previousMs(3 * MINUTE - 1)).toBe(2 * MINUTE);
    expect(minutes.nextMs(3 * MINUTE)).toBe(4 * MINUTE);
    expect(minutes.nextMs(3 * MINUTE - 1)).toBe(3 * MINUTE);
  });
});

describe("the planned instant of a firing that names none", () => {
  const at = (ms: number, last?: Fired) => plannedNear(minutes, ms, 1_000, last);

  it("is the latest, however late the timer rings", () => {
    expect(at(3 * MINUTE)).toBe(3 * MINUTE);
    expect(at(3 * MINUTE + 1)).toBe(3 * MINUTE);
    expect(at(4 * MINUTE - 1_001)).toBe(3 * MINUTE);
  });

  it("is the next one if the timer rings a little early", () => {
    expect(at(4 * MINUTE - 1)).toBe(4 * MINUTE);
    expect(at(4 * MINUTE - 1_000)).toBe(4 * MINUTE);
  });

  it("is never further away than a quarter of the way: a tolerance larger than the period would shift every firing", () => {
    const dense = calendarOfPeriod(1_000);
    expect(plannedNear(dense, 10_300, 1_000)).toBe(10_000);
    expect(plannedNear(dense, 10_800, 1_000)).toBe(11_000);
  });

  it("is not twice the same for a timer that has the period, wherever in it the timer rings", () => {
    for (const phaseMs of [0, 10, 20_000, 40_000, 58_990, 59_000, 59_990]) {
      const jitterMs = [3, -2, 2, -3, 3, -3, 0];
      const planned: number[] = [];
      let last: Fired | undefined;
      for (const [index, offMs] of jitterMs.entries()) {
        const atMs = (10 + index) * MINUTE + phaseMs + offMs;
        const plannedMs = at(atMs, last) ?? Number.NaN;
        last = { plannedMs, atMs };
        planned.push(plannedMs);
      }
      const steps = planned.slice(1).map((ms, index) => ms - (planned[index] ?? 0));
      expect(steps, `phase ${phaseMs}`).toEqual(steps.map(() => MINUTE));
    }
  });

  it("is the same for a timer that rings more often than the schedule, until the next is due", () => {
    let last: Fired | undefined;
    const planned: number[] = [];
    for (let atMs = 10 * MINUTE; atMs <= 12 * MINUTE; atMs += 5_000) {
      const plannedMs = at(atMs, last) ?? Number.NaN;
      last = { plannedMs, atMs };
      planned.push(plannedMs);
      expect(plannedMs - atMs).toBeLessThanOrEqual(1_000);
    }
    expect([...new Set(planned)]).toEqual([10 * MINUTE, 11 * MINUTE, 12 * MINUTE]);
  });

  it("is nothing before a schedule has begun, and its last one after it has ended", () => {
    const once = {
      previousMs: (atMs: number) => (atMs >= MINUTE ? MINUTE : undefined),
      nextMs: (atMs: number) => (atMs < MINUTE ? MINUTE : undefined),
    };
    expect(plannedNear(once, 0, 1_000)).toBeUndefined();
    expect(plannedNear(once, MINUTE - 5, 1_000)).toBe(MINUTE);
    expect(plannedNear(once, 9 * MINUTE, 1_000)).toBe(MINUTE);
  });
});
