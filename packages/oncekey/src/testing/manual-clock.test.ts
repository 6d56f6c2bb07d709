import { describe, expect, it } from "vitest";
import { manualClock } from "./manual-clock.js";

describe("manualClock", () => {
  it("fires timers in the order they are due, each at its own instant", async () => {
    const clock = manualClock();
    const fired: [string, number][] = [];
    for (const [name, delayMs] of [
      ["c", 30],
      ["a", 10],
      ["b", 10],
      ["late", 41],
    ] as const) {
      clock.setTimer(() => fired.push([name, clock.monotonicMs()]), delayMs);
    }
    await clock.advance(40);
    expect(fired).toEqual([
      ["a", 10],
      ["b", 10],
      ["c", 30],
    ]);
    expect(clock.monotonicMs()).toBe(40);
    expect(clock.pending()).toBe(1);
  });

  it("lets what a timer sets off run before the next timer", async () => {
    const clock = manualClock();
    const log: string[] = [];
    const chain = async () => {
      await Promise.resolve();
      await Promise.resolve();
      log.push("after the first");
      clock.setTimer(() => log.push("set by the first"), 5);
    };
    clock.setTimer(() => void chain(), 10);
    clock.setTimer(() => log.push("second"), 20);
    await clock.advance(20);
    expect(log).toEqual(["after the first", "set by the first", "second"]);
  });

  it("sees timers that are set by code which was called just before", async () => {
    const clock = manualClock();
    let woken = false;
    const sleeper = (async () => {
      await Promise.resolve();
      await new Promise<void>((resolve) => clock.setTimer(resolve, 5));
      woken = true;
    })();
    await clock.advance(5);
    expect(woken).toBe(true);
    await sleeper;
  });

  it("cancels a timer, also twice, and also after it fired", async () => {
    const clock = manualClock();
    let fired = 0;
    const cancelled = clock.setTimer(() => fired++, 5);
    const kept = clock.setTimer(() => fired++, 5);
    cancelled.cancel();
    cancelled.cancel();
    await clock.advance(5);
    kept.cancel();
    expect(fired).toBe(1);
    expect(clock.pending()).toBe(0);
  });

  it("moves both clocks together, and the wall clock alone when it jumps", async () => {
    const clock = manualClock(1_000);
    await clock.advance(25);
    expect([clock.now(), clock.monotonicMs()]).toEqual([1_025, 25]);
    clock.jump(-1_000);
    expect([clock.now(), clock.monotonicMs()]).toEqual([25, 25]);
  });

  it("refuses to go back, or on for ever", async () => {
    await expect(manualClock().advance(-1)).rejects.toThrow(RangeError);
    await expect(manualClock().advance(Number.NaN)).rejects.toThrow(RangeError);
    await expect(manualClock().advance(Number.POSITIVE_INFINITY)).rejects.toThrow(RangeError);
  });
});
