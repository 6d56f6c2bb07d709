/**
 * Occurrences that were planned while no instance was up.
 *
 * Interleavings: the job is new · one instance starts, or two at once · the last runner crashed · an outage longer than `maxMissed`, than
 * the retention · one that was missed is made up for while the next one fires · the store is down when an instance starts.
 */
import { describe, expect, it } from "vitest";
import { refused } from "../core/processes.js";
import { type Fleet, fleet, HOUR_MS, type InstanceOptions, LEASE_MS, START_MS } from "./fleet.js";

const quick: InstanceOptions = { run: () => undefined };

/** Some occurrences have run, the last of them at the first of the hours; then nothing was up for some hours. */
async function afterOutage(hours: number, options: InstanceOptions = {}, upFor = 1): Promise<Fleet> {
  const { everyMs = HOUR_MS } = options;
  const place = fleet(START_MS - (upFor - 1) * everyMs);
  const before = place.start({ ...quick, ...options });
  for (let ran = 1; ran < upFor; ran++) {
    await before.fire();
    await place.clock.advance(everyMs);
  }
  await before.fire();
  await before.close();
  await place.clock.advance(hours * HOUR_MS + 60_000);
  return place;
}

describe("after an outage of three hours and a minute", () => {
  it("none: nothing is made up for", async () => {
    const place = await afterOutage(3);
    const instance = place.start(quick);
    await instance.fire.catchUp();
    expect(place.hours()).toEqual([0]);
  });

  it("latest: the last one is made up for, and the others are told as missed", async () => {
    const place = await afterOutage(3, { missed: "latest" });
    const instance = place.start({ ...quick, missed: "latest" });
    await instance.fire.catchUp();
    expect(place.hours()).toEqual([0, 3]);
    expect(instance.ends()).toEqual(["missed", "missed", "executed"]);
  });

  it("all: each is made up for, in the order of the plan", async () => {
    const place = await afterOutage(3, { missed: "all" });
    const instance = place.start({ ...quick, missed: "all" });
    await instance.fire.catchUp();
    expect(place.hours()).toEqual([0, 1, 2, 3]);
  });

  it("all: also without catchUp, when the schedule fires next", async () => {
    const place = await afterOutage(3, { missed: "all" });
    await place.clock.advance(HOUR_MS - 60_000);
    await place.start({ ...quick, missed: "all" }).fire();
    expect(place.hours()).toEqual([0, 1, 2, 3, 4]);
  });

  it("two instances that start at once make up for each once, one at a time", async () => {
    const place = await afterOutage(3, { missed: "all" });
    const instances = [place.start({ missed: "all" }), place.start({ missed: "all" })];
    const caughtUp = Promise.all(instances.map(({ fire }) => fire.catchUp()));
    for (let turn = 1; turn <= 3; turn++) {
      await place.clock.advance(2_000);
      expect(place.starts).toHaveLength(turn + 1);
      place.starts[turn]?.resolve();
    }
    await place.clock.advance(2_000);
    await caughtUp;
    expect(place.hours()).toEqual([0, 1, 2, 3]);
  });

  it("all: at most maxMissed, the latest ones", async () => {
    const place = await afterOutage(12, { missed: "all" }, 4);
    await place.start({ ...quick, missed: "all", maxMissed: 2 }).fire.catchUp();
    expect(place.hours()).toEqual([-3, -2, -1, 0, 11, 12]);
  });
});

describe("what counts as missed", () => {
  it("nothing, if the job has never run: a new job does not begin with its past", async () => {
    const place = fleet();
    await place.clock.advance(50 * HOUR_MS);
    await place.start({ ...quick, missed: "all" }).fire.catchUp();
    expect(place.hours()).toEqual([]);
  });

  it("nothing that may only have been forgotten", async () => {
    const place = await afterOutage(0, { missed: "all", retentionMs: 8 * HOUR_MS });
    await place.clock.advance(20 * HOUR_MS);
    const instance = place.start({ ...quick, missed: "all", retentionMs: 8 * HOUR_MS });
    await instance.fire.catchUp();
    expect(place.hours()).toEqual([0]);
  });

  it("an occurrence of a dense schedule, after an outage that was long", async () => {
    const everyMs = 60_000;
    const place = await afterOutage(8, { missed: "latest", everyMs }, 121);
    await place.start({ ...quick, missed: "latest", everyMs, maxMissed: 10 }).fire.catchUp();
    expect(place.starts).toHaveLength(122);
    expect(place.starts.at(-1)?.plannedAt).toBe("2026-01-01T08:01:00.000Z");
  });

  it("what was completed is not, although what came before it was missed and is not made up for", async () => {
    const place = await afterOutage(3, { missed: "latest" });
    await place.start({ ...quick, missed: "latest" }).fire.catchUp();
    const again = place.start({ ...quick, missed: "latest" });
    await again.fire.catchUp();
    expect(place.hours()).toEqual([0, 3]);
    expect(again.ends()).toEqual([]);
  });
});

describe("a runner that crashed when it was the only instance", () => {
  it("is made up for at the next start, in the window, whatever missed says", async () => {
    const place = fleet();
    const first = place.start();
    void first.fire();
    await place.clock.settle();
    first.crash();
    await place.clock.advance(2_000);
    void place.start().fire.catchUp();
    await place.clock.advance(2 * LEASE_MS);
    expect(place.starts.map(({ work }) => work.attempt)).toEqual([1, 2]);
  });

  it("also where a later occurrence was left out because of it", async () => {
    const place = fleet();
    const options = { windowMs: 5 * HOUR_MS };
    const first = place.start(options);
    void first.fire();
    await place.clock.advance(HOUR_MS);
    await first.fire();
    expect(first.ends()).toEqual(["skipped"]);
    first.crash();
    await place.clock.advance(60_000);
    void place.start(options).fire.catchUp();
    await place.clock.advance(2 * LEASE_MS);
    expect(place.hours()).toEqual([0, 0]);
  });

  it("after the window only where missed says so", async () => {
    for (const [missed, runs] of [
      ["none", 1],
      ["latest", 2],
    ] as const) {
      const place = fleet();
      const options = { missed, windowMs: 40_000 };
      const first = place.start(options);
      void first.fire();
      await place.clock.settle();
      first.crash();
      await place.clock.advance(HOUR_MS / 2);
      void place.start(options).fire.catchUp();
      await place.clock.advance(2 * LEASE_MS);
      expect(place.starts).toHaveLength(runs);
    }
  });
});

describe("a store that is down when an instance starts", () => {
  it("is asked again until it answers", async () => {
    const place = await afterOutage(3, { missed: "all" });
    const instance = place.start({ ...quick, missed: "all" });
    instance.wire.all(refused);
    const caughtUp = instance.fire.catchUp();
    await place.clock.advance(10_000);
    expect(place.hours()).toEqual([0]);
    instance.wire.all(undefined);
    await place.clock.advance(2_000);
    await caughtUp;
    expect(place.hours()).toEqual([0, 1, 2, 3]);
  });

  it("for ten minutes: that is told, and not thrown, and the next firing looks again", async () => {
    const place = await afterOutage(3, { missed: "all" });
    const instance = place.start({ ...quick, missed: "all" });
    instance.wire.all(refused);
    const caughtUp = instance.fire.catchUp();
    await place.clock.advance(11 * 60_000);
    await caughtUp;
    expect(instance.events.of("occurrence")).toMatchObject([
      { end: "given-up", cause: { code: "STORE_UNAVAILABLE" } },
    ]);
    instance.wire.all(undefined);
    await place.clock.advance(HOUR_MS - 15 * 60_000);
    await instance.fire();
    expect(place.hours()).toEqual([0, 1, 2, 3]);
  });
});
