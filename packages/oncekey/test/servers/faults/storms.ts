/**
 * @module test/servers/faults/storms
 *
 * 200 calls on 20 keys from two processes, while one call of the store in ten never gets an answer: half of those have landed.
 */
import { describe, expect, it } from "vitest";
import type { Outcome } from "./apps/caller.mjs";
import { LEASE_MS, type Subject } from "./subject.js";

const KEYS = 20;
const CALLS_PER_KEY = 10;

/** A caller waits at most this long for another's result. */
const WAIT_MS = 2 * LEASE_MS;
/** What a call may take: the wait, and a few calls of the store that each end at their timeout. */
const BOUND_MS = WAIT_MS + 4 * LEASE_MS;

export function stormSuite(subject: Subject): void {
  describe("one store call in ten is never answered", () => {
    it.for(subject.guarantees)("%s", { timeout: 60_000 }, async (guarantee, context) => {
      const place = await subject.place(context);
      const callers = await Promise.all([place.caller({ loses: 0.1 }), place.caller({ loses: 0.1 })]);
      const labels = Array.from({ length: KEYS }, (_, n) => place.label(`k${n}`));
      const calls = Array.from({ length: CALLS_PER_KEY }, (_, n) => n).flatMap((n) =>
        labels.map((label) => ({ label, caller: callers[n % callers.length] })),
      );
      let slowestMs = 0;
      const outcomes = await Promise.all(
        calls.map(async ({ label, caller }): Promise<Outcome | undefined> => {
          const startedAt = performance.now();
          const outcome = await caller?.call({ label, guarantee, waitMs: WAIT_MS, workMs: 20 });
          slowestMs = Math.max(slowestMs, performance.now() - startedAt);
          return outcome;
        }),
      );
      expect(slowestMs).toBeLessThan(BOUND_MS);
      expect(outcomes.filter((outcome) => outcome?.kind === "executed").length).toBeGreaterThan(0);
      expect(outcomes.filter((outcome) => outcome?.kind === "replayed").length).toBeGreaterThan(0);
      for (const label of labels) await place.verify(label, guarantee);
    });
  });
}
