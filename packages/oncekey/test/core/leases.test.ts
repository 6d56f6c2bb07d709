import { describe, expect, it } from "vitest";
import type { Work } from "../../src/core/work.js";
import {
  asserted,
  codeOf,
  declined,
  deferred,
  firstly,
  gate,
  keyOf,
  refused,
  silent,
  slowWork,
  started,
  world,
} from "./processes.js";

const LEASE_MS = 30_000;

describe("a lease", () => {
  it("is renewed every third of itself, so work may take longer than it: one run", async () => {
    const place = world({ leaseMs: 200 });
    const { process, another, wire, clock } = place;
    const { starts, work } = slowWork();
    const leader = process.run({}, work);
    await clock.settle();
    const repeats = Array.from({ length: 5 }, (_, n) => (n % 2 ? process : another()).run({}, work));
    await clock.advance(1_000);
    starts[0]?.resolve("done");
    await clock.advance(10);
    expect(await leader).toMatchObject({ kind: "executed" });
    expect((await Promise.all(repeats)).every(({ kind }) => kind === "replayed")).toBe(true);
    expect(starts).toHaveLength(1);
    expect(wire.count("extend")).toBeGreaterThanOrEqual(14);
    await clock.advance(1_000);
    expect(wire.count("extend")).toBeLessThanOrEqual(16);
  });

  it("is believed in from when a renewal was sent, not from when its answer came", async () => {
    const place = world();
    const { process, wire, clock } = place;
    const { call, work, end } = await started(process, place);
    wire.on("extend", async (_, next) => {
      const answer = await next();
      wire.on("extend", silent);
      await new Promise<void>((resolve) => clock.setTimer(resolve, 1_900));
      return answer;
    });
    // The one renewal that lands is sent after a third of the lease.
    await clock.advance(LEASE_MS / 3 + LEASE_MS * 0.9 - 1);
    expect(asserted(work)).toBeUndefined();
    await clock.advance(2);
    expect(asserted(work)).toBe("LEASE_LOST");
    end.resolve("done");
    await clock.settle();
    await call;
  });

  it("is believed in from when the claim was sent, not from when its answer came", async () => {
    const place = world();
    const { process, wire, clock } = place;
    wire.on("claim", async (_, next) => {
      const answer = await next();
      await new Promise<void>((resolve) => clock.setTimer(resolve, 900));
      return answer;
    });
    wire.on("extend", silent);
    const seen = deferred<Work>();
    const end = deferred();
    const call = process.run({}, (work) => {
      seen.resolve(work);
      return end.promise;
    });
    await clock.advance(900);
    const work = await seen.promise;
    await clock.advance(LEASE_MS * 0.9 - 901);
    expect(asserted(work)).toBeUndefined();
    await clock.advance(2);
    expect(asserted(work)).toBe("LEASE_LOST");
    end.resolve();
    await clock.settle();
    await call;
  });

  it("that cannot be renewed is given up before anybody else may take it, and renewed if the store comes back", async () => {
    const place = world();
    const { process, wire, clock } = place;
    const { call, work, end } = await started(process, place);
    wire.on("extend", refused);
    const { signal } = work;
    await clock.advance(LEASE_MS * 0.9 - 10);
    expect([signal.aborted, asserted(work)]).toEqual([false, undefined]);
    await clock.advance(20);
    expect(signal.reason).toMatchObject({ code: "LEASE_LOST" });
    expect(process.of("lease-lost")).toMatchObject([{ reason: "not-renewed" }]);
    wire.on("extend", undefined);
    await clock.advance(10_000);
    expect((await wire.store.find(keyOf()))?.lapsed).toBe(false);
    end.resolve("done");
    expect(await call).toMatchObject({ kind: "executed", result: "done" });
    expect(await process.run({}, () => "again")).toMatchObject({ kind: "replayed", result: "done" });
  });

  it("survives one extend that hangs and one that fails", async () => {
    const place = world();
    const { process, wire, clock } = place;
    const { call, work, end } = await started(process, place);
    wire.on("extend", firstly(1, silent));
    await clock.advance(LEASE_MS / 2);
    wire.on("extend", firstly(1, refused));
    await clock.advance(2 * LEASE_MS);
    expect(work.signal.aborted).toBe(false);
    end.resolve("done");
    await call;
    expect(process.of("lease-lost")).toEqual([]);
  });

  it("ends after maxRunMs: the signal says so, the key lapses, and a repeat in this process takes over", async () => {
    const place = world({ maxRunMs: 60_000, onInFlight: { waitMs: 5 * LEASE_MS } });
    const { process, wire, clock } = place;
    const never = await started(process, place);
    await clock.advance(59_000);
    const repeat = process.run({}, () => "second");
    await clock.advance(1_001);
    expect(never.work.signal.reason).toMatchObject({ code: "RUN_TOO_LONG" });
    expect(asserted(never.work)).toBe("RUN_TOO_LONG");
    const extends_ = wire.count("extend");
    await clock.advance(2 * LEASE_MS);
    expect(wire.count("extend")).toBe(extends_);
    expect(await repeat).toEqual({ kind: "executed", result: "second", attempt: 2 });
    never.end.resolve("first");
    await clock.settle();
    expect(await never.call).toMatchObject({ kind: "replayed", result: "second" });
    expect(process.of("superseded")).toHaveLength(1);
  });

  it("is confirmed by asking the store, and then lies ahead whole", async () => {
    const place = world();
    const { process, wire, clock } = place;
    const { call, work, end } = await started(process, place);
    await clock.advance(9_000);
    await work.confirm();
    expect((await wire.store.find(keyOf()))?.leaseRemainingMs).toBe(LEASE_MS);
    wire.on("extend", refused);
    const failed = codeOf(work.confirm());
    await clock.settle();
    expect(await failed).toBe("STORE_UNAVAILABLE");
    wire.on("extend", undefined);
    end.resolve("done");
    await call;
  });

  it("of a record that the store lost is claimed again with the same token", async () => {
    const place = world();
    const { process, wire, clock } = place;
    const { call, work, end } = await started(process, place);
    const { token } = process.of("claimed")[0] as { token: string };
    // As if the store had failed over to an empty replica.
    await wire.store.release({
      key: keyOf(),
      token: token as never,
      started: true,
      keepAttempts: false,
      code: undefined,
    });
    await clock.advance(LEASE_MS / 3);
    expect(await wire.store.find(keyOf())).toMatchObject({ state: "claimed", holder: token });
    expect(work.signal.aborted).toBe(false);
    end.resolve("done");
    expect(await call).toMatchObject({ kind: "executed" });
  });

  it("of a record that somebody declared unknown is not held any more: confirm refuses, completing is still taken", async () => {
    const place = world({ guarantee: "at-most-once" });
    const { process, wire } = place;
    const { call, work, end } = await started(process, place);
    wire.on("extend", () => Promise.resolve({ kind: "unknown" }));
    expect(await codeOf(work.confirm())).toBe("LEASE_LOST");
    expect(work.signal.aborted).toBe(true);
    end.resolve("done");
    expect(await call).toMatchObject({ kind: "executed", result: "done" });
  });

  it("of a lost record whose completion lands first is not lost to anybody", async () => {
    const place = world();
    const { process, wire, clock } = place;
    const { call, end } = await started(process, place);
    const line = gate();
    wire.on("extend", () => Promise.resolve({ kind: "gone" }));
    wire.on("claim", line.interference);
    const slow = gate();
    wire.on("complete", async (request, next) => {
      const answer = await next();
      await slow.interference(request, () => Promise.resolve());
      return answer;
    });
    await clock.advance(LEASE_MS / 3);
    end.resolve("done");
    await clock.settle();
    line.open();
    await clock.settle();
    slow.open();
    expect(await call).toMatchObject({ kind: "executed", result: "done" });
    expect(process.of("lease-lost")).toEqual([]);
  });

  it("that is renewed while its work fails does not bring the released record back", async () => {
    const place = world();
    const { process, wire, clock } = place;
    const { call, end } = await started(process, place);
    const line = gate();
    wire.on("extend", line.interference);
    await clock.advance(LEASE_MS / 3);
    expect(line.waiting()).toBe(1);
    end.reject(declined);
    await clock.settle();
    expect(await codeOf(call)).toBe(declined);
    line.open();
    await clock.advance(5_000);
    expect(await wire.store.find(keyOf())).toBeUndefined();
    expect(wire.count("claim")).toBe(1);
  });

  it("is not claimed again while its release is under way", async () => {
    const place = world();
    const { process, wire, clock } = place;
    const { call, end } = await started(process, place);
    const [extend, released] = [gate(), gate()];
    wire.on("extend", extend.interference);
    await clock.advance(LEASE_MS / 3);
    // The release lands; the renewal finds the record gone before the release is answered.
    wire.on("release", async (request, next) => {
      const answer = await next();
      await released.interference(request, () => Promise.resolve());
      return answer;
    });
    end.reject(declined);
    await clock.settle();
    extend.open();
    await clock.settle();
    released.open();
    expect(await codeOf(call)).toBe(declined);
    await clock.advance(5_000);
    expect(await wire.store.find(keyOf())).toBeUndefined();
    expect(wire.count("claim")).toBe(1);
  });

  it("that was being claimed again when its work failed leaves no claim", async () => {
    const place = world();
    const { process, wire, clock } = place;
    const { call, end } = await started(process, place);
    const line = gate();
    wire.on("extend", () => Promise.resolve({ kind: "gone" }));
    wire.on("claim", firstly(1, line.interference));
    await clock.advance(LEASE_MS / 3);
    expect(line.waiting()).toBe(1);
    end.reject(declined);
    await clock.settle();
    expect(await codeOf(call)).toBe(declined);
    line.open();
    await clock.advance(5_000);
    expect(await wire.store.find(keyOf())).toBeUndefined();
  });
});
