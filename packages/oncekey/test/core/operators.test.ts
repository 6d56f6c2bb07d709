import { describe, expect, it } from "vitest";
import type { IdempotencyEvent } from "../../src/core/events.js";
import { createIdempotency, type IdempotencyOptions } from "../../src/core/idempotency.js";
import { GLOBAL_SCOPE } from "../../src/core/key.js";
import type { Policy } from "../../src/core/policy.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { codeOf, declined, deferred, refused, silent, wire } from "./processes.js";

const NOTE = { by: "ada", reason: "ticket 7" };
const TARGET = { operation: "charge", scope: "tenant", key: "k" } as const;
const OPTIONS = { ...TARGET, input: 1 };
const LEASE_MS = 30_000;

function desk(policy: Policy = {}) {
  const clock = manualClock();
  const line = wire(memoryStore({ clock, sweepIntervalMs: 0 }));
  const events: IdempotencyEvent[] = [];
  const options: IdempotencyOptions = {
    store: line.store,
    clock,
    acceptsLostWrites: true,
    ...policy,
    onEvent: (event) => void events.push(event),
  };
  const audits = () => events.filter(({ type }) => type === "operator");
  return { clock, line, idempotency: createIdempotency(options), audits };
}

describe("an operator", () => {
  it("finds a record by what its caller used, and by its digest", async () => {
    const { idempotency } = desk();
    expect(await idempotency.find(TARGET)).toBeUndefined();
    await idempotency.run(OPTIONS, () => "done");
    const found = await idempotency.find(TARGET);
    expect(found).toMatchObject({ operation: "charge", state: "completed", attempt: 1, label: undefined });
    if (found === undefined) return;
    expect(await idempotency.find({ recordKey: found.key })).toMatchObject({ version: found.version });
    expect(await idempotency.find({ ...TARGET, scope: GLOBAL_SCOPE })).toBeUndefined();
    expect(JSON.stringify(found)).not.toContain("tenant");
  });

  it("sees the caller's key in clear only where the policy keeps it", async () => {
    const { idempotency } = desk({ keyLabels: true });
    await idempotency.run({ ...OPTIONS, key: ["order", 7] }, () => "done");
    expect(await idempotency.find({ ...TARGET, key: ["order", 7] })).toMatchObject({ label: "order 7" });
  });

  it("reaches the steps of an operation by their names: to forget it is not to forget them", async () => {
    const { idempotency } = desk();
    const steps: string[] = [];
    const run = () =>
      idempotency.run(OPTIONS, ({ step }) =>
        step("pay", async (inner) => {
          await inner.step("log", () => void steps.push("logs"));
          steps.push("pays");
        }),
      );
    await run();
    expect((await idempotency.list({ operation: "charge/pay" })).records).toHaveLength(1);
    expect((await idempotency.list()).records).toHaveLength(3);
    await idempotency.forget(TARGET, NOTE);
    await run();
    expect(steps).toEqual(["logs", "pays"]);
    const work = await idempotency.find(TARGET);
    if (work !== undefined) await idempotency.forget({ recordKey: work.key, step: "pay" }, NOTE);
    await idempotency.forget(TARGET, NOTE);
    await run();
    expect(steps).toEqual(["logs", "pays", "pays"]);
    const log = { ...TARGET, step: ["pay", "log"] };
    expect(await idempotency.find(log)).toMatchObject({ operation: "charge/pay/log", state: "completed" });
    expect(await idempotency.find({ ...TARGET, step: "log" })).toBeUndefined();
  });

  it("lists by scope, operation and state, a page at a time", async () => {
    const { idempotency } = desk();
    for (const key of [1, 2, 3]) await idempotency.run({ ...OPTIONS, key }, () => "done");
    await idempotency.run({ ...OPTIONS, scope: "other" }, () => "done");
    const first = await idempotency.list({ scope: "tenant", limit: 2 });
    const second = await idempotency.list({ scope: "tenant", limit: 2, cursor: first.cursor });
    expect([first.records.length, second.records.length, second.cursor]).toEqual([2, 1, undefined]);
    expect((await idempotency.list({ operation: "refund" })).records).toEqual([]);
    expect((await idempotency.list({ state: "completed" })).records).toHaveLength(4);
  });

  it("is refused a live claim unless that is asked for; then its holder is told and cannot come back", async () => {
    const { idempotency, clock, audits } = desk();
    const end = deferred<string>();
    let lost: AbortSignal | undefined;
    const call = idempotency.run(OPTIONS, ({ signal }) => {
      lost = signal;
      return end.promise;
    });
    await clock.settle();
    for (const act of ["release", "forget"] as const) {
      const refusal = await idempotency[act](TARGET, NOTE).catch((error: unknown) => error);
      expect(refusal).toMatchObject({ code: "CLAIM_LIVE", retryAfterMs: LEASE_MS });
    }
    expect(audits()).toEqual([]);
    expect(await idempotency.release(TARGET, { ...NOTE, evenIfLive: true })).toEqual({
      kind: "applied",
      effectiveAfterMs: 0,
    });
    expect(audits()).toMatchObject([
      { action: "release", by: "ada", reason: "ticket 7", operation: "charge" },
    ]);
    await clock.advance(LEASE_MS / 3);
    expect(lost?.reason).toMatchObject({ code: "LEASE_LOST" });
    end.resolve("first");
    expect(await call).toBe("first");
    expect(await idempotency.run(OPTIONS, () => "second")).toBe("second");
  });

  it("takes a live claim away while repeats wait here: one of them takes over when its holder hears of it", async () => {
    const { idempotency, clock } = desk({ onInFlight: { waitMs: LEASE_MS } });
    const end = deferred<string>();
    const call = idempotency.run(OPTIONS, () => end.promise);
    await clock.settle();
    const repeat = idempotency.run(OPTIONS, () => "second");
    await clock.settle();
    await idempotency.forget(TARGET, { ...NOTE, evenIfLive: true });
    await clock.advance(LEASE_MS / 3 + 600);
    expect(await repeat).toBe("second");
    end.resolve("first");
    expect(await call).toBe("second");
  });

  it("frees an unknown outcome, or says how it ended; repeats then run, or get that", async () => {
    const { idempotency } = desk({ guarantee: "at-most-once" });
    const fail = (key: string) =>
      codeOf(
        idempotency.run({ ...OPTIONS, key }, () => {
          throw declined;
        }),
      );
    const again = (key: string) => codeOf(idempotency.run({ ...OPTIONS, key }, () => "ran"));
    for (const key of ["a", "b", "c", "d"]) await fail(key);
    await idempotency.release({ ...TARGET, key: "a" }, NOTE);
    await idempotency.resolve({ ...TARGET, key: "b" }, { kind: "done", result: { id: 7 } }, NOTE);
    await idempotency.resolve({ ...TARGET, key: "c" }, { kind: "done" }, NOTE);
    await idempotency.resolve({ ...TARGET, key: "d" }, { kind: "not-done" }, NOTE);
    expect([await again("a"), await again("b"), await again("c"), await again("d")]).toEqual([
      "ran",
      { id: 7 },
      "RESULT_NOT_RETAINED",
      "ran",
    ]);
  });

  it("cannot undo what is completed, except by forgetting it", async () => {
    const { idempotency } = desk();
    await idempotency.run(OPTIONS, () => "first");
    expect(await codeOf(idempotency.release(TARGET, NOTE))).toBe("RECORD_CHANGED");
    expect(await codeOf(idempotency.resolve(TARGET, { kind: "done" }, NOTE))).toBe("RECORD_CHANGED");
    expect(await idempotency.forget(TARGET, NOTE)).toEqual({ kind: "applied", effectiveAfterMs: 0 });
    expect(await idempotency.run(OPTIONS, () => "second")).toBe("second");
    expect(await idempotency.forget({ ...TARGET, key: "never" }, NOTE)).toEqual({ kind: "absent" });
  });

  it("changes only what was looked at", async () => {
    const { idempotency, clock } = desk({
      guarantee: "at-most-once",
      onLapsed: () => ({ kind: "not-done" }),
    });
    await codeOf(
      idempotency.run(OPTIONS, () => {
        throw declined;
      }),
    );
    const version = (await idempotency.find(TARGET))?.version;
    const end = deferred<string>();
    const call = idempotency.run(OPTIONS, () => end.promise);
    await clock.settle();
    expect(await codeOf(idempotency.release(TARGET, { ...NOTE, version, evenIfLive: true }))).toBe(
      "RECORD_CHANGED",
    );
    end.resolve("done");
    expect(await call).toBe("done");
  });

  it("is told which call it was that the store did not answer", async () => {
    const calls: string[] = [];
    const down = () => Promise.reject(new Error("connection refused"));
    const store = { ...memoryStore({ sweepIntervalMs: 0 }), find: down, list: down };
    const onEvent = (event: IdempotencyEvent): void => {
      if (event.type === "store-down") calls.push(event.call);
    };
    const idempotency = createIdempotency({ store, onEvent });
    expect(await codeOf(idempotency.find(TARGET))).toBe("STORE_UNAVAILABLE");
    expect(await codeOf(idempotency.list())).toBe("STORE_UNAVAILABLE");
    expect(calls).toEqual(["find", "list"]);
  });

  it("gets an error when the store does not answer, and no word about the result", async () => {
    const { idempotency, line, audits, clock } = desk({ guarantee: "at-most-once" });
    await codeOf(
      idempotency.run(OPTIONS, () => {
        throw declined;
      }),
    );
    for (const fault of [refused, silent]) {
      line.on("resolve", fault);
      const asked = codeOf(idempotency.release(TARGET, NOTE));
      await clock.advance(2_000);
      expect(await asked).toBe("STORE_UNAVAILABLE");
    }
    expect(audits()).toEqual([]);
  });
});

describe("reconcileUnknown", () => {
  it("asks about what has lapsed and what is unknown, once each, and reports what was said", async () => {
    const words: Record<number, "done" | "not-done" | "unknown"> = { 1: "done", 2: "not-done", 3: "unknown" };
    const asked: string[] = [];
    const { idempotency, line, clock } = desk({
      guarantee: "at-most-once",
      keyLabels: true,
      onLapsed: ({ label = "" }) => {
        asked.push(label);
        return { kind: words[Number(label)] ?? "done" };
      },
    });
    for (const key of [1, 2, 3]) {
      await codeOf(
        idempotency.run({ ...OPTIONS, key }, () => {
          throw declined;
        }),
      );
    }
    line.on("extend", silent);
    void idempotency.run({ ...OPTIONS, key: 4 }, () => new Promise(() => undefined));
    await clock.advance(LEASE_MS + 10_000);
    expect(await idempotency.reconcileUnknown()).toEqual({ done: 1, notDone: 1, unknown: 1, skipped: 1 });
    expect(asked.sort()).toEqual(["1", "2", "3"]);
    // The fourth has lapsed, but not for a whole lease: its holder may only be slow.
    await clock.advance(LEASE_MS);
    expect(await idempotency.reconcileUnknown()).toEqual({ done: 1, notDone: 0, unknown: 1, skipped: 0 });
    expect(asked.slice(3).sort()).toEqual(["3", "4"]);
    expect(await codeOf(idempotency.run({ ...OPTIONS, key: 2 }, () => "ran"))).toBe("ran");
  });

  it("asks once about what it has found lapsed, also where nobody can say", async () => {
    let asked = 0;
    const { idempotency, line, clock } = desk({
      guarantee: "at-most-once",
      onLapsed: () => {
        asked += 1;
        return { kind: "unknown" };
      },
    });
    line.on("extend", silent);
    void idempotency.run(OPTIONS, () => new Promise(() => undefined));
    await clock.advance(3 * LEASE_MS);
    expect(await idempotency.reconcileUnknown()).toEqual({ done: 0, notDone: 0, unknown: 1, skipped: 0 });
    expect(asked).toBe(1);
  });

  it("says how many it could not ask about, for want of somebody to ask", async () => {
    const { idempotency } = desk({ guarantee: "at-most-once" });
    await codeOf(
      idempotency.run(OPTIONS, () => {
        throw declined;
      }),
    );
    expect(await idempotency.reconcileUnknown()).toEqual({ done: 0, notDone: 0, unknown: 0, skipped: 1 });
  });

  it("leaves alone what may simply run again", async () => {
    const { idempotency, line, clock } = desk({});
    line.on("extend", silent);
    void idempotency.run(OPTIONS, () => new Promise(() => undefined));
    await clock.advance(3 * LEASE_MS);
    expect(await idempotency.reconcileUnknown()).toEqual({ done: 0, notDone: 0, unknown: 0, skipped: 0 });
  });
});
