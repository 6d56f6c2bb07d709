/**
 * Occurrences of one job, one after the other.
 *
 * Interleavings: the next one fires while one runs (skip, queue, allow) · three wait in line · a runner crashes while it has the turn: its
 * occurrence is not left out because of itself, the next one is · a runner that failed is in its pause when the next one fires · the
 * turn cannot be asked for because the store is down.
 */
import { describe, expect, it } from "vitest";
import { refused } from "../core/processes.js";
import { type Fleet, fleet, HOUR_MS, type Instance, LEASE_MS } from "./fleet.js";

/** Lets an hour pass after the last full one, and fires. */
async function fireNextHour({ clock }: Fleet, instances: readonly Instance[]): Promise<void> {
  await clock.advance(HOUR_MS - (clock.now() % HOUR_MS));
  for (const { fire } of instances) void fire();
  await clock.settle();
}

describe("while the occurrence before still runs", () => {
  it("skip: it is left out, on all instances, also later", async () => {
    const place = fleet();
    const instances = [place.start(), place.start()];
    for (const { fire } of instances) void fire();
    await place.clock.settle();
    await fireNextHour(place, instances);
    expect(instances.map(({ ends }) => ends().includes("skipped"))).toEqual([true, true]);
    place.starts[0]?.resolve();
    await place.clock.advance(1_000);
    const late = place.start();
    await late.fire();
    expect(late.ends()).toEqual(["skipped"]);
    expect(place.hours()).toEqual([0]);
    await fireNextHour(place, instances);
    expect(place.hours()).toEqual([0, 2]);
  });

  it("queue: it waits for its turn, in the order of the plan", async () => {
    const place = fleet();
    const options = { overlap: "queue", windowMs: 4 * HOUR_MS } as const;
    const instances = [place.start(options), place.start(options)];
    for (const { fire } of instances) void fire();
    await place.clock.settle();
    await fireNextHour(place, instances);
    await place.clock.advance(HOUR_MS / 2);
    expect(place.hours()).toEqual([0]);
    place.starts[0]?.resolve();
    await place.clock.advance(1_000);
    expect(place.hours()).toEqual([0, 1]);
    expect(place.starts[1]?.work.attempt).toBe(1);
  });

  it("queue: three that wait all get their turn, one at a time", async () => {
    const place = fleet();
    const instance = place.start({ overlap: "queue", windowMs: 12 * HOUR_MS });
    void instance.fire();
    for (let hour = 1; hour <= 3; hour++) await fireNextHour(place, [instance]);
    for (let turn = 0; turn < 4; turn++) {
      expect(place.starts).toHaveLength(turn + 1);
      place.starts[turn]?.resolve();
      await place.clock.advance(2_000);
    }
    expect(place.hours().toSorted()).toEqual([0, 1, 2, 3]);
    expect(instance.ends()).toEqual(["executed", "executed", "executed", "executed"]);
  });

  it("queue: what does not get its turn in its window is given up, and was never started", async () => {
    const place = fleet();
    const instance = place.start({ overlap: "queue" });
    void instance.fire();
    await fireNextHour(place, [instance]);
    await place.clock.advance(HOUR_MS + 60_000);
    expect(instance.events.of("occurrence")).toMatchObject([
      { end: "given-up", cause: { code: "NOT_PERFORMED" } },
    ]);
    expect(place.hours()).toEqual([0]);
  });

  it("allow: both run", async () => {
    const place = fleet();
    const instance = place.start({ overlap: "allow" });
    void instance.fire();
    await fireNextHour(place, [instance]);
    expect(place.hours()).toEqual([0, 1]);
  });
});

describe("a runner that crashes with the turn", () => {
  it("leaves its occurrence to another, which is not left out because of it", async () => {
    const place = fleet();
    const [first, second] = [place.start(), place.start()];
    for (const { fire } of [first, second]) void fire();
    await place.clock.settle();
    first.crash();
    await place.clock.advance(LEASE_MS * 3);
    expect(place.hours()).toEqual([0, 0]);
    place.starts[1]?.resolve();
    await place.clock.advance(1_000);
    expect(second.ends()).toEqual(["executed"]);
  });

  it("does not keep the turn for longer than its lease", async () => {
    const place = fleet();
    const first = place.start({ windowMs: 31_000 });
    void first.fire();
    await place.clock.settle();
    first.crash();
    const second = place.start();
    await fireNextHour(place, [second]);
    expect(place.hours()).toEqual([0, 1]);
  });
});

it("an attempt in its pause has given its turn back", async () => {
  const place = fleet();
  const minute = { everyMs: 60_000, windowMs: HOUR_MS, retryDelayMs: 100_000 };
  const instance = place.start(minute);
  void instance.fire();
  await place.clock.settle();
  place.starts[0]?.reject(new Error("no paper"));
  await place.clock.advance(60_000);
  void instance.fire();
  await place.clock.settle();
  expect(place.starts).toHaveLength(2);
  place.starts[1]?.resolve();
  await place.clock.advance(60_000);
  expect(place.starts.map(({ work }) => work.attempt)).toEqual([1, 1, 2]);
});

it("an attempt after a failure is not left out because a later occurrence has the turn by then", async () => {
  const place = fleet();
  const options = { everyMs: 5_000, windowMs: HOUR_MS, retryDelayMs: 10_000 };
  const instance = place.start(options);
  void instance.fire();
  await place.clock.settle();
  place.starts[0]?.reject(new Error("no paper"));
  await place.clock.advance(5_000);
  void instance.fire();
  await place.clock.advance(6_000);
  expect(place.starts.map(({ work }) => work.attempt)).toEqual([1, 1]);
  place.starts[1]?.resolve();
  await place.clock.advance(1_000);
  expect(place.starts.map(({ work }) => work.attempt)).toEqual([1, 1, 2]);
  place.starts[2]?.resolve();
  await place.clock.advance(1_000);
  expect(instance.ends()).toEqual(["executed", "executed"]);
});

it("a turn that cannot be asked for costs no more than a pause", async () => {
  const place = fleet();
  const instance = place.start();
  const { wire } = instance;
  let claims = 0;
  // The second claim is that of the turn, and the one after it the same, asked again.
  wire.on("claim", (request, next) => {
    claims += 1;
    return claims === 2 || claims === 3 ? refused(request, next) : next();
  });
  void instance.fire();
  await place.clock.advance(10_000);
  expect(place.starts).toHaveLength(1);
  expect(place.hours()).toEqual([0]);
});

it("an instance with maxAttempts of its own never runs out of turns", async () => {
  const place = fleet();
  const instance = place.start({ instancePolicy: { maxAttempts: 2 }, run: () => undefined });
  for (let hour = 0; hour < 5; hour++) {
    void instance.fire();
    await place.clock.advance(HOUR_MS);
  }
  expect(place.hours()).toEqual([0, 1, 2, 3, 4]);
});
