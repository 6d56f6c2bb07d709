import { expect, it, vi } from "vitest";
import { type Clock, systemClock } from "../../src/core/clock.js";
import { createIdempotency } from "../../src/core/idempotency.js";
import type { Store } from "../../src/core/store.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { slowWork, startProcess, world } from "./processes.js";

const LEASE_MS = 5_000;
const AT_MOST_ONCE = {
  guarantee: "at-most-once",
  acceptsLostWrites: true,
  scope: "global",
  leaseMs: LEASE_MS,
} as const;
const OPTIONS = { operation: "charge", key: "k1", fingerprint: "off" } as const;

const nextTurn = () => new Promise((resolve) => setTimeout(resolve, 0));

/** A clock that can be told that this process stood still: time has passed, and no timer has fired. */
function freezable(): { readonly clock: Clock; freeze(forMs: number): void } {
  let lostMs = 0;
  const monotonicMs = (): number => systemClock.monotonicMs() + lostMs;
  return {
    clock: { ...systemClock, monotonicMs },
    freeze(forMs) {
      lostMs += forMs;
    },
  };
}

it("work does not start if the process stood still since its claim was won and another took over", async () => {
  const { clock, freeze } = freezable();
  const store = memoryStore({ clock, sweepIntervalMs: 0 });
  const runs: string[] = [];
  const other = createIdempotency({ store, clock, scope: "global", leaseMs: LEASE_MS });
  let frozen = false;
  const slow: Store<never> = {
    ...store,
    async claim(request) {
      const answer = await store.claim(request);
      if (!frozen) {
        frozen = true;
        freeze(LEASE_MS * 2);
        await other.run(OPTIONS, () => runs.push("the other"));
      }
      return answer;
    },
  };
  const process = createIdempotency({ store: slow, clock, scope: "global", leaseMs: LEASE_MS });
  const outcome = await process.runWithOutcome(OPTIONS, () => runs.push("the frozen one"));
  expect(outcome.kind).toBe("replayed");
  expect(runs).toEqual(["the other"]);
});

it("work starts after standing still if nobody took over, under a renewed claim", async () => {
  const { clock, freeze } = freezable();
  const store = memoryStore({ clock, sweepIntervalMs: 0 });
  let frozen = false;
  const slow: Store<never> = {
    ...store,
    async claim(request) {
      const answer = await store.claim(request);
      if (!frozen) freeze(LEASE_MS * 2);
      frozen = true;
      return answer;
    },
  };
  const process = createIdempotency({ store: slow, clock, scope: "global", leaseMs: LEASE_MS });
  const outcome = await process.runWithOutcome(OPTIONS, ({ attempt, assertHeld }) => {
    assertHeld();
    return attempt;
  });
  expect(outcome).toEqual({ kind: "executed", result: 1, attempt: 1 });
});

it("a claim that lapsed before its work could start is no start, also to those who wait for it under at-most-once", async () => {
  const { clock, freeze } = freezable();
  const store = memoryStore({ clock, sweepIntervalMs: 0 });
  const runs: string[] = [];
  let waiting: Promise<unknown> | undefined;
  const slow: Store<never> = {
    ...store,
    async claim(request) {
      const answer = await store.claim(request);
      if (waiting === undefined) {
        waiting = process.runWithOutcome(OPTIONS, () => runs.push("who waited"));
        await nextTurn();
        freeze(LEASE_MS * 2);
      }
      return answer;
    },
  };
  const process = createIdempotency({ ...AT_MOST_ONCE, store: slow, clock });
  const outcome = await process.runWithOutcome(OPTIONS, () => runs.push("the frozen one"));
  expect(outcome).toMatchObject({ kind: "executed", attempt: 1 });
  expect(await waiting).toMatchObject({ kind: "replayed" });
  expect(runs).toEqual(["the frozen one"]);
});

it("a claim that others found lapsed before its work could start is given back under at-most-once", async () => {
  const { clock, freeze } = freezable();
  const store = memoryStore({ clock, sweepIntervalMs: 0 });
  const runs: string[] = [];
  const other = createIdempotency({ ...AT_MOST_ONCE, store, clock });
  let frozen = false;
  const slow: Store<never> = {
    ...store,
    async claim(request) {
      const answer = await store.claim(request);
      if (frozen) return answer;
      frozen = true;
      freeze(LEASE_MS * 2);
      await expect(other.run(OPTIONS, () => runs.push("the other"))).rejects.toThrow();
      return answer;
    },
  };
  const process = createIdempotency({ ...AT_MOST_ONCE, store: slow, clock });
  const refused = process.run(OPTIONS, () => runs.push("the frozen one"));
  await expect(refused).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
  expect(runs).toEqual([]);
  await vi.waitFor(() => other.run(OPTIONS, () => runs.push("the next")));
  expect(runs).toEqual(["the next"]);
});

it("a claim that stood still for most of its lease is renewed before it lapses", async () => {
  const { clock, wire } = world();
  let lostMs = 0;
  const late = { ...clock, monotonicMs: () => clock.monotonicMs() + lostMs };
  wire.on("claim", async (_, next) => {
    const answer = await next();
    wire.on("claim", undefined);
    lostMs = 28_000;
    return answer;
  });
  const slow = startProcess({ store: wire.store, clock: late });
  const { starts, work } = slowWork();
  const call = slow.run({}, work);
  await clock.settle();
  await clock.advance(0);
  expect(wire.count("extend")).toBe(1);
  starts[0]?.resolve("done");
  await clock.settle();
  expect(await call).toMatchObject({ kind: "executed" });
});
