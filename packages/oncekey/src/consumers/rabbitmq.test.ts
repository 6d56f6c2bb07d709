import { expect, test } from "vitest";
import { manualClock } from "../testing/manual-clock.js";
import { createHolds, DELIVERIES_HEADER, deliveriesOf, endWith, stoppingProblems } from "./rabbitmq.js";

test("how often a message came: by a quorum queue, by our copies, or at least that it is not the first time", () => {
  expect(deliveriesOf(undefined, false)).toBe(1);
  expect(deliveriesOf({}, true)).toBe(3);
  expect(deliveriesOf({ "x-delivery-count": 1 }, true)).toBe(2);
  expect(deliveriesOf({ [DELIVERIES_HEADER]: 4 }, false)).toBe(5);
  expect(deliveriesOf({ [DELIVERIES_HEADER]: 4, "x-delivery-count": 2 }, true)).toBe(7);
});

test("headers that anybody may have written count for nothing unless they are counts", () => {
  for (const value of ["4", -1, 1.5, Number.NaN, null, {}]) {
    expect(deliveriesOf({ [DELIVERIES_HEADER]: value, "x-delivery-count": value }, false)).toBe(1);
  }
});

test("what is held goes back after its delay, or all at once at the end; later nothing is held", async () => {
  const clock = manualClock();
  const holds = createHolds(clock);
  const back: string[] = [];
  void holds.hold(1_000).then(() => back.push("first"));
  void holds.hold(60_000).then(() => back.push("second"));
  await clock.advance(1_000);
  expect(back).toEqual(["first"]);
  holds.end();
  await clock.settle();
  expect(back).toEqual(["first", "second"]);
  expect(clock.pending()).toBe(0);
  await holds.hold(60_000);
});

test("a signal ends the holding, also one that has fired before", async () => {
  const clock = manualClock();
  const stopping = new AbortController();
  for (const holds of [createHolds(clock), createHolds(clock)]) {
    endWith(holds, stopping.signal);
    const held = holds.hold(60_000);
    stopping.abort();
    await held;
  }
  expect(stoppingProblems("soon")).toEqual(["stopping must be an AbortSignal"]);
  expect(stoppingProblems(stopping.signal)).toEqual([]);
});
