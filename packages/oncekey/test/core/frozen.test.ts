import { describe, expect, it } from "vitest";
import { asserted, codeOf, declined, keyOf, leftovers, silent, started, world } from "./processes.js";

const LEASE_MS = 30_000;

describe("a holder that stood still past its lease", () => {
  /** Frozen: its timers and its calls stand still, while others go on. */
  async function frozen(onLapsed: "rerun" = "rerun") {
    const place = world({ onLapsed, onInFlight: { waitMs: 60_000 } });
    const stuck = await started(place.process, place);
    place.wire.on("extend", silent);
    await place.clock.advance(LEASE_MS);
    place.wire.on("extend", undefined);
    const next = place.another();
    return { ...place, stuck, next, second: await started(next, place) };
  }

  it("changes nothing when it wakes, is told, and gets the result that is on record", async () => {
    const { stuck, second, process, wire, clock } = await frozen();
    expect(second.work.attempt).toBe(2);
    expect(asserted(stuck.work)).toBe("LEASE_LOST");
    expect(stuck.work.signal.aborted).toBe(true);
    expect(await codeOf(stuck.work.confirm())).toBe("LEASE_LOST");
    second.end.resolve("second");
    await second.call;
    const before = await wire.store.find(keyOf());
    stuck.end.resolve("first");
    await clock.settle();
    expect(await stuck.call).toMatchObject({ kind: "replayed", result: "second" });
    expect(await wire.store.find(keyOf())).toMatchObject({ version: before?.version });
    const [event] = process.of("superseded");
    expect(event).toMatchObject({ by: before?.holder });
    expect(event?.digest).not.toBe(event?.byDigest);
    expect(process.of("finished")).toMatchObject([{ outcome: "lease_lost" }]);
  });

  it("keeps its own result while the other is still running, and the record gets the other's", async () => {
    const { stuck, second, next, process, clock } = await frozen();
    stuck.end.resolve("first");
    await clock.settle();
    expect(await stuck.call).toMatchObject({ kind: "executed", result: "first" });
    expect(process.of("completion-lost")).toMatchObject([{ reason: "replaced" }]);
    const repeat = process.run({}, () => "third");
    await clock.settle();
    second.end.resolve("second");
    await clock.advance(1);
    await second.call;
    expect(await repeat).toMatchObject({ kind: "replayed", result: "second" });
    expect([leftovers(process), leftovers(next)]).toEqual(Array(2).fill({ here: 0, waiting: 0 }));
  });

  it("that fails late does not free the other's claim: no third runs beside it", async () => {
    const { stuck, second, another, process, clock } = await frozen();
    stuck.end.reject(declined);
    await clock.settle();
    expect(await codeOf(stuck.call)).toBe(declined);
    const elsewhere = another();
    const third = [process, elsewhere].map((one) => codeOf(one.run({ onInFlight: "reject" }, () => "third")));
    await clock.settle();
    expect(await Promise.all(third)).toEqual(["IN_FLIGHT", "IN_FLIGHT"]);
    second.end.resolve("second");
    expect(await second.call).toMatchObject({ kind: "executed", result: "second" });
  });

  it("lets those who wait with it follow the record, not its promise", async () => {
    const place = world({ onInFlight: { waitMs: 60_000 } });
    const { process, another, wire, clock } = place;
    const stuck = await started(process, place);
    wire.on("extend", silent);
    const joined = process.run({}, () => "never");
    await clock.advance(LEASE_MS);
    wire.on("extend", undefined);
    const second = await started(another(), place);
    stuck.end.resolve("first");
    await clock.settle();
    second.end.resolve("second");
    await clock.advance(1);
    await Promise.all([stuck.call, second.call]);
    expect(await joined).toMatchObject({ kind: "replayed", result: "second" });
  });

  it("and that nobody replaced goes on, is renewed and completes", async () => {
    const place = world();
    const { process, wire, clock } = place;
    const stuck = await started(process, place);
    wire.on("extend", silent);
    await clock.advance(3 * LEASE_MS);
    wire.on("extend", undefined);
    stuck.end.resolve("first");
    await clock.settle();
    expect(await stuck.call).toMatchObject({ kind: "executed", result: "first" });
    expect(await process.run({}, () => "second")).toMatchObject({ kind: "replayed", result: "first" });
  });
});
