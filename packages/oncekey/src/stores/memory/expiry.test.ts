import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createExpiry } from "./expiry.js";
import { NO_SLOT } from "./rings.js";

const SLOTS = 400;

function setUp() {
  const ends = new Map<number, number>();
  const expiry = createExpiry(SLOTS, (slot) => ends.get(slot) ?? Number.POSITIVE_INFINITY);
  const schedule = (slot: number, endMs: number, nowMs: number): void => {
    ends.set(slot, endMs);
    expiry.schedule(slot, endMs, nowMs);
  };
  /** Takes out all that is due. */
  const take = (nowMs: number): number[] => {
    const taken: number[] = [];
    for (let slot = expiry.due(nowMs); slot !== NO_SLOT; slot = expiry.due(nowMs)) {
      taken.push(slot);
      expiry.cancel(slot);
      ends.delete(slot);
    }
    return taken;
  };
  return { expiry, ends, schedule, take };
}

describe("expiry", () => {
  it("finds exactly what is due, whatever was moved or cancelled, while durations are few", () => {
    const step = fc.record({
      slot: fc.integer({ min: 1, max: 20 }),
      durationMs: fc.constantFrom(5, 30, 100, Number.POSITIVE_INFINITY),
      passMs: fc.integer({ min: 0, max: 40 }),
      cancel: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { expiry, ends, schedule, take } = setUp();
        let nowMs = 0;
        for (const { slot, durationMs, passMs, cancel } of steps) {
          if (cancel) {
            expiry.cancel(slot);
            ends.delete(slot);
          } else {
            schedule(slot, nowMs + durationMs, nowMs);
          }
          nowMs += passMs;
          const due = [...ends].filter(([, endMs]) => endMs <= nowMs).map(([one]) => one);
          expect(take(nowMs).sort()).toEqual(due.sort());
        }
        expect(expiry.nextMs()).toBe(Math.min(Number.POSITIVE_INFINITY, ...ends.values()));
      }),
    );
  });

  it("takes any number of durations: never early, and at most twice as late", () => {
    const { schedule, take } = setUp();
    const durations = Array.from({ length: SLOTS }, (_, index) => 1_000 + index * 7);
    for (const [index, durationMs] of durations.entries()) schedule(index + 1, durationMs, 0);
    const takenAt = new Map<number, number>();
    for (let nowMs = 0; nowMs <= 8_000; nowMs += 1) {
      for (const slot of take(nowMs)) takenAt.set(slot, nowMs);
    }
    for (const [index, durationMs] of durations.entries()) {
      const atMs = takenAt.get(index + 1) ?? Number.POSITIVE_INFINITY;
      expect(atMs).toBeGreaterThanOrEqual(durationMs);
      expect(atMs).toBeLessThanOrEqual(2 * durationMs);
    }
  });

  it("gives the queue of a duration that is used no more to another one", () => {
    const { schedule, take } = setUp();
    for (let durationMs = 1; durationMs <= 10_000; durationMs++) {
      const nowMs = durationMs * 20_000;
      schedule(1, nowMs + durationMs, nowMs);
      schedule(2, nowMs + durationMs + 1, nowMs);
      expect(take(nowMs + durationMs)).toEqual([1]);
      expect(take(nowMs + durationMs + 1)).toEqual([2]);
    }
  });
});
