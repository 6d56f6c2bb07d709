import { expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/core/clock.js";
import { createIdempotency } from "../../src/core/idempotency.js";
import type { Store } from "../../src/core/store.js";
import { memoryStore } from "../../src/stores/memory/index.js";

const LEASE_MS = 5_000;
const OPTIONS = { operation: "charge", key: "k1", fingerprint: "off" } as const;

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
