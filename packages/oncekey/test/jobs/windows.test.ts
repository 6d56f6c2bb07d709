/**
 * When an occurrence may start, and what ends that: its window, the store, a guarantee, a shutdown.
 *
 * Interleavings: the window ends while it fails, while it still runs elsewhere, before it is fired · the store is down when it fires, and
 * comes back in the window, or after it · clocks that differ by less and by more than the work takes.
 */
import { isOncekeyError, notPerformed } from "oncekey";
import { describe, expect, it, vi } from "vitest";
import { refused } from "../core/processes.js";
import { fleet, HOUR_MS, LEASE_MS, START_MS } from "./fleet.js";

describe("the window", () => {
  it("ends the attempts: what failed in it does not run after it, and that is told", async () => {
    const { clock, starts, start } = fleet();
    const options = { windowMs: 40_000, retryDelayMs: 60_000 };
    const [first, second] = [start(options), start(options)];
    for (const { fire } of [first, second]) void fire();
    await clock.settle();
    starts[0]?.reject(new Error("no paper"));
    await clock.advance(HOUR_MS / 2);
    expect(starts).toHaveLength(1);
    expect([first.ends(), second.ends()]).toEqual([["given-up"], ["given-up"]]);
  });

  it("leaves alone what still runs when it ends", async () => {
    const { clock, starts, start } = fleet();
    const onError = vi.fn();
    const [first, second] = [start({ windowMs: 40_000 }), start({ windowMs: 40_000, onError })];
    for (const { fire } of [first, second]) void fire();
    await clock.advance(60_000);
    expect(second.ends()).toEqual(["in-flight"]);
    expect(onError).not.toHaveBeenCalled();
    starts[0]?.resolve();
    await clock.advance(1_000);
    expect(first.ends()).toEqual(["executed"]);
  });

  it("is the time to the next planned instant, at least two leases", async () => {
    for (const [everyMs, runsAgain] of [
      [HOUR_MS, true],
      [1_000, true],
    ] as const) {
      const { clock, starts, start } = fleet();
      const [first, second] = [start({ everyMs }), start({ everyMs })];
      for (const { fire } of [first, second]) void fire();
      await clock.settle();
      first.crash();
      await clock.advance(LEASE_MS + 1_000);
      expect(starts.length === 2).toBe(runsAgain);
    }
  });

  it("is over for a firing that comes after it: then it was missed", async () => {
    const { clock, starts, start } = fleet();
    const [none, latest] = [
      start({ windowMs: 40_000, run: () => undefined }),
      start({ windowMs: 40_000, missed: "latest", run: () => undefined }),
    ];
    await clock.advance(50_000);
    await none.fire();
    expect([none.ends(), starts]).toEqual([["missed"], []]);
    await latest.fire();
    expect([latest.ends(), starts.length]).toEqual([["executed"], 1]);
  });
});

describe("a store that is down when it fires", () => {
  it("is asked again until it answers", async () => {
    const { clock, starts, start } = fleet();
    const instances = [start({ run: () => undefined }), start({ run: () => undefined })];
    for (const { wire } of instances) wire.all(refused);
    const fired = Promise.all(instances.map(({ fire }) => fire()));
    await clock.advance(60_000);
    expect(starts).toHaveLength(0);
    for (const { wire } of instances) wire.all(undefined);
    await clock.advance(5_000);
    await fired;
    expect(starts).toHaveLength(1);
  });

  it("until the window ends: given up, with the reason", async () => {
    const { clock, starts, start } = fleet();
    const onError = vi.fn();
    const { fire, wire, events } = start({ windowMs: 40_000, onError });
    wire.all(refused);
    void fire();
    await clock.advance(60_000);
    wire.all(undefined);
    await clock.advance(60_000);
    expect(starts).toHaveLength(0);
    const cause = { code: "STORE_UNAVAILABLE" };
    expect(events.of("occurrence")).toMatchObject([{ end: "given-up", cause }]);
    expect(onError).toHaveBeenCalledWith(
      expect.objectContaining(cause),
      expect.objectContaining({ givenUp: true }),
    );
  });

  it("never makes all instances run it, whatever the instance says of its routes", async () => {
    const { clock, starts, start } = fleet();
    const { fire, wire } = start({ instancePolicy: { onStoreDown: "run" }, overlap: "allow" });
    wire.all(refused);
    void fire();
    await clock.advance(10_000);
    expect(starts).toHaveLength(0);
  });
});

describe("at most once", () => {
  const policy = { guarantee: "at-most-once", acceptsLostWrites: true } as const;

  it("work that fails or crashes is not started again, and that is told", async () => {
    for (const end of ["fails", "crashes"] as const) {
      const { clock, starts, start } = fleet();
      const [first, second] = [start(policy), start(policy)];
      for (const { fire } of [first, second]) void fire();
      await clock.settle();
      if (end === "crashes") first.crash();
      else starts[0]?.reject(new Error("no paper"));
      await clock.advance(HOUR_MS / 2);
      expect(starts).toHaveLength(1);
      expect(second.events.of("occurrence")).toMatchObject([
        { end: "given-up", cause: { code: "OUTCOME_UNKNOWN" } },
      ]);
    }
  });

  it("work that says that nothing has happened is tried again", async () => {
    const { clock, starts, start } = fleet();
    void start(policy).fire();
    await clock.settle();
    starts[0]?.reject(notPerformed("no connection"));
    await clock.advance(20_000);
    expect(starts).toHaveLength(2);
  });
});

it("an instance that is shutting down leaves the occurrence to the others", async () => {
  const { clock, starts, start } = fleet();
  const [first, second] = [start(), start()];
  for (const { fire } of [first, second]) void fire();
  await clock.settle();
  void second.close();
  await clock.advance(1_000);
  expect(second.ends()).toEqual(["closing"]);
  starts[0]?.resolve();
  await clock.advance(1_000);
  expect(first.ends()).toEqual(["executed"]);
  expect(isOncekeyError(second.events.of("occurrence")[0]?.cause)).toBe(false);
});

describe("clocks that differ", () => {
  it("fire the same planned instant sooner or later, and it runs once", async () => {
    const everyMs = 60_000;
    const { clock, starts, start } = fleet(START_MS - 3_000);
    const instances = [2_000, 0, -2_000].map((clockOffMs) => {
      const { fire } = start({ everyMs, clockOffMs, run: () => undefined });
      // Its timer rings when its own clock shows the full minute.
      return () => ((clock.now() + clockOffMs) % everyMs === 0 ? fire() : undefined);
    });
    for (let second = 0; second < 70; second++) {
      for (const tick of instances) void tick();
      await clock.advance(1_000);
    }
    expect(starts.map(({ plannedAt }) => plannedAt)).toEqual([
      "2026-01-01T00:00:00.000Z",
      "2026-01-01T00:01:00.000Z",
    ]);
  });

  it("by more than the work takes: the record outlives the window, so that the last one finds it done", async () => {
    const { clock, starts, start } = fleet();
    const quick = { run: () => undefined, retentionMs: 60_000, windowMs: 40_000 };
    await start(quick).fire();
    await clock.advance(50_000);
    const behind = start({ ...quick, clockOffMs: -50_000 });
    await behind.fire();
    expect(behind.ends()).toEqual(["elsewhere"]);
    expect(starts).toHaveLength(1);
  });
});
