import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createServerClock } from "./server-clock.js";

const ms = fc.nat({ max: 10_000 });

describe("what the server's clock shows", () => {
  it("is unknown before the first answer", () => {
    expect(createServerClock().at(5)).toBeUndefined();
  });

  it("is never ahead of it, and not further behind than the quickest answer took", () => {
    const trip = fc.record({ pause: ms, there: ms, back: ms });
    fc.assert(
      fc.property(
        fc.integer({ min: -50_000, max: 50_000 }),
        fc.array(trip, { minLength: 1 }),
        (offset, trips) => {
          const clock = createServerClock();
          let nowMs = 0;
          let quickest = Number.POSITIVE_INFINITY;
          for (const { pause, there, back } of trips) {
            const sentAtMs = nowMs + pause;
            nowMs = sentAtMs + there + back;
            clock.seen(sentAtMs + there + offset, sentAtMs, nowMs);
            quickest = Math.min(quickest, there + back + 1);
            const behind = nowMs + offset - (clock.at(nowMs) ?? Number.NaN);
            expect(behind).toBeGreaterThanOrEqual(0);
            expect(behind).toBeLessThanOrEqual(quickest);
          }
        },
      ),
    );
  });

  it("follows a clock that was set, from the next answer on", () => {
    const clock = createServerClock();
    clock.seen(1_000, 0, 2);
    expect(clock.at(10)).toBe(1_008);
    clock.seen(500_000, 20, 22);
    expect(clock.at(30)).toBe(500_008);
    clock.seen(100, 40, 42);
    expect(clock.at(50)).toBe(108);
  });
});
