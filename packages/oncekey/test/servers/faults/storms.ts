/**
 * @module test/servers/faults/storms
 *
 * 200 calls on 20 keys from two processes, while one call of the store in ten never gets an answer: half of those have landed.
 */
import { describe, expect, it } from "vitest";
import { answered, PASSING } from "./asking.js";
import { LEASE_MS, type Subject } from "./subject.js";

const KEYS = 20;
const CALLS_PER_KEY = 10;

/** A caller waits at most this long for another's result. */
const WAIT_MS = 2 * LEASE_MS;
/** What a call may take: the wait, and a few calls of the store that each end at their timeout. */
const BOUND_MS = WAIT_MS + 4 * LEASE_MS;

export function stormSuite(subject: Subject): void {
  describe("one store call in ten is never answered", () => {
    it.for(subject.guarantees)("%s", { timeout: 120_000 }, async (guarantee, context) => {
      const place = await subject.place(context);
      const callers = await Promise.all([place.caller({ loses: 0.1 }), place.caller({ loses: 0.1 })]);
      const labels = Array.from({ length: KEYS }, (_, n) => place.label(`k${n}`));
      const calls = Array.from({ length: CALLS_PER_KEY }, (_, n) => n).flatMap((n) =>
        labels.map((label) => ({ label, caller: callers[n % callers.length] })),
      );
      let slowestMs = 0;
      await Promise.all(
        calls.map(async ({ label, caller }) => {
          const startedAt = performance.now();
          await caller?.call({ label, guarantee, waitMs: WAIT_MS, workMs: 20 });
          slowestMs = Math.max(slowestMs, performance.now() - startedAt);
        }),
      );
      expect(slowestMs).toBeLessThan(BOUND_MS);

      // The storm is over: every key has a result, or gets one; under at-most-once some may be unknown for good.
      const calm = await place.caller();
      for (const label of labels) {
        const outcome = await answered(() => calm.call({ label, guarantee }), PASSING);
        const unknown = outcome.kind === "refused" && outcome.code === "OUTCOME_UNKNOWN";
        if (guarantee !== "at-most-once" || !unknown) expect(outcome).not.toMatchObject({ kind: "refused" });
      }
      for (const label of labels) await place.verify(label, guarantee);
    });
  });
}
