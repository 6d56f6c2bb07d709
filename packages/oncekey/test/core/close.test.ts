import { describe, expect, it } from "vitest";
import { createIdempotency, type IdempotencyOptions } from "../../src/core/idempotency.js";
import type { Policy } from "../../src/core/policy.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { codeOf, declined, deferred, firstly, gate, keyOf, refused, silent, wire } from "./processes.js";

const OPTIONS = { operation: "op", key: "k", input: 1 } as const;
const LEASE_MS = 30_000;

function instance(policy: Policy = {}) {
  const clock = manualClock();
  const line = wire(memoryStore({ clock, sweepIntervalMs: 0 }));
  const types: string[] = [];
  const options: IdempotencyOptions<never, "at-least-once", "global"> = {
    store: line.store,
    clock,
    scope: "global",
    ...(policy as object),
    onEvent: ({ type }) => void types.push(type),
  };
  return { clock, line, types, idempotency: createIdempotency(options) };
}

describe("close", () => {
  it("with nothing to do is done at once, and refuses every new call", async () => {
    const { idempotency, line } = instance();
    expect(await idempotency.close()).toEqual({ unfinishedWork: 0, unlandedCompletions: 0 });
    const refusal = await idempotency.run(OPTIONS, () => "ran").catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "CLOSING", status: 503, retryable: true, retryAfterMs: 1_000 });
    expect(line.count("claim")).toBe(0);
  });

  it("lets running work finish and complete, renewing its lease meanwhile, and answers those who wait", async () => {
    const { idempotency, line, clock } = instance({ onInFlight: { waitMs: LEASE_MS } });
    const end = deferred<string>();
    const call = idempotency.run(OPTIONS, () => end.promise);
    await clock.settle();
    const repeat = codeOf(idempotency.run(OPTIONS, () => "ran"));
    await clock.settle();
    const closed = idempotency.close({ graceMs: 2 * LEASE_MS });
    await clock.settle();
    expect(await repeat).toBe("CLOSING");
    await clock.advance(LEASE_MS + 5_000);
    expect(line.count("extend")).toBe(3);
    end.resolve("done");
    await clock.settle();
    expect(await call).toBe("done");
    expect(await closed).toEqual({ unfinishedWork: 0, unlandedCompletions: 0 });
    expect((await line.store.find(keyOf()))?.state).toBe("completed");
  });

  it("ends after its grace with work unfinished: the claim is left to lapse, never released", async () => {
    const { idempotency, line, clock } = instance();
    void idempotency.run(OPTIONS, () => new Promise(() => undefined));
    await clock.settle();
    const closed = idempotency.close({ graceMs: 1_000 });
    await clock.advance(1_000);
    expect(await closed).toEqual({ unfinishedWork: 1, unlandedCompletions: 0 });
    expect(line.count("release")).toBe(0);
    expect((await line.store.find(keyOf()))?.state).toBe("claimed");
  });

  it("lets completions land that are being retried, and reports those that did not", async () => {
    for (const mended of [true, false]) {
      const { idempotency, line, clock, types } = instance();
      line.on("complete", refused);
      const call = idempotency.run(OPTIONS, () => "done");
      await clock.settle();
      await call;
      const closed = idempotency.close();
      if (mended) line.on("complete", undefined);
      await clock.advance(10_000);
      expect(await closed).toEqual({ unfinishedWork: 0, unlandedCompletions: mended ? 0 : 1 });
      expect(types.includes("completion-lost")).toBe(!mended);
    }
  });

  it("counts no release among the completions, but gives it its time", async () => {
    const { idempotency, line, clock } = instance();
    line.on("release", refused);
    const call = codeOf(
      idempotency.run(OPTIONS, () => {
        throw declined;
      }),
    );
    await clock.settle();
    expect(await call).toBe(declined);
    const closed = idempotency.close();
    line.on("release", undefined);
    await clock.advance(1_000);
    expect(await closed).toEqual({ unfinishedWork: 0, unlandedCompletions: 0 });
    expect(await line.store.find(keyOf())).toBeUndefined();
  });

  it("starts no work of a claim that was under way: it is given back", async () => {
    const { idempotency, line, clock } = instance();
    const way = gate();
    line.on("claim", firstly(1, way.interference));
    let ran = 0;
    const call = codeOf(idempotency.run(OPTIONS, () => ++ran));
    await clock.settle();
    const closed = idempotency.close();
    way.open();
    await clock.advance(100);
    expect(await call).toBe("CLOSING");
    expect(await closed).toEqual({ unfinishedWork: 0, unlandedCompletions: 0 });
    expect([ran, await line.store.find(keyOf())]).toEqual([0, undefined]);
  });

  it("starts no work of a waiter whose claim was under way: it is given back", async () => {
    const { idempotency, line, clock } = instance();
    const end = deferred<string>();
    const call = codeOf(idempotency.run(OPTIONS, () => end.promise));
    await clock.settle();
    let ran = 0;
    const repeat = codeOf(idempotency.run(OPTIONS, () => ++ran));
    await clock.settle();
    const way = gate();
    line.on("claim", firstly(1, way.interference));
    end.reject(declined);
    await clock.settle();
    expect(way.waiting()).toBe(1);
    const closed = idempotency.close();
    way.open();
    await clock.advance(100);
    expect([await call, await repeat]).toEqual([declined, "CLOSING"]);
    await closed;
    expect([ran, await line.store.find(keyOf())]).toEqual([0, undefined]);
  });

  it("starts nothing unprotected either", async () => {
    const { idempotency, line, clock } = instance({ onStoreDown: "run" });
    line.on("claim", silent);
    let ran = 0;
    const call = codeOf(idempotency.run(OPTIONS, () => ++ran));
    await clock.settle();
    const closed = idempotency.close();
    await clock.advance(10_000);
    expect(await call).toBe("STORE_UNAVAILABLE");
    await closed;
    expect(ran).toBe(0);
  });

  it("called twice is one close", async () => {
    const { idempotency, clock } = instance();
    const end = deferred<string>();
    const call = idempotency.run(OPTIONS, () => end.promise);
    await clock.settle();
    const closes = [idempotency.close(), idempotency.close({ graceMs: 1 })];
    await clock.advance(10);
    end.resolve("done");
    await clock.settle();
    await call;
    expect(await Promise.all(closes)).toEqual(Array(2).fill({ unfinishedWork: 0, unlandedCompletions: 0 }));
  });
});
