/**
 * @module
 * Every order in which attempts can outlive their leases and meet: work may run twice then, but there is one record,
 * it keeps its first outcome, and everybody who has not run follows it.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Guarantee } from "../../src/core/record.js";
import { codeOf, declined, silent } from "./processes.js";
import {
  drain,
  expectNothingLeft,
  holds,
  noticeUnhandledRejections,
  processesOn,
  scheduled,
  severalOf,
} from "./scheduled.js";

noticeUnhandledRejections();

interface Caller {
  readonly process: 0 | 1 | 2;
  readonly comesAfterMs: number;
  readonly takesMs: number;
  readonly throws: boolean;
}

const anyCaller: fc.Arbitrary<Caller> = fc.record({
  process: fc.constantFrom(0 as const, 1 as const, 2 as const),
  comesAfterMs: fc.constantFrom(0, 0, 3_000, 6_000),
  takesMs: fc.constantFrom(0, 3_000, 5_000, 9_000, 15_000),
  throws: fc.constantFrom(true, false, false, false),
});

/** For each renewal in turn, whether it is lost. */
const anyLosses = fc.array(fc.constantFrom(true, true, true, false), { minLength: 1, maxLength: 12 });

async function play(
  scheduler: fc.Scheduler,
  callers: readonly Caller[],
  losses: readonly boolean[],
  guarantee: Guarantee,
) {
  const orderly = scheduled(scheduler, []);
  const policy = { guarantee, leaseMs: 4_000, onInFlight: { waitMs: 30_000 } };
  const { clock, line, processes } = processesOn(orderly, 3, policy);
  const pause = (ms: number) => new Promise<void>((resolve) => clock.setTimer(resolve, ms));
  let renewals = 0;
  line.on("extend", (request, next) => {
    const lost = losses[renewals++ % losses.length] ?? false;
    return lost ? silent(request, next) : orderly(request, next);
  });
  let answered = 0;
  const calls = callers.map(async ({ process, comesAfterMs, takesMs, throws }, index) => {
    await pause(comesAfterMs);
    const work = async (): Promise<string> => {
      await pause(takesMs);
      if (throws) throw declined;
      return `result of ${index}`;
    };
    const answer = await codeOf(processes[process]?.run({}, work) ?? Promise.resolve());
    answered += 1;
    return answer;
  });
  await drain(scheduler, clock, () => answered === callers.length);
  return { answers: await Promise.all(calls), processes };
}

const anyCallers = severalOf(anyCaller);

describe("attempts that may outlive their leases, in any order of calls and answers", () => {
  it("leave one record with its first outcome, which everybody follows who has not run", async () => {
    await holds(
      fc.asyncProperty(fc.scheduler(), anyCallers, anyLosses, async (scheduler, callers, losses) => {
        const { answers, processes } = await play(scheduler, callers, losses, "at-least-once");
        const results = answers.filter((answer) => typeof answer === "object" && answer !== declined);
        const stored = processes.flatMap((one) => one.of("completed"));
        expect(stored.length).toBeLessThanOrEqual(1);
        const replayed = results.filter((answer) => (answer as { kind: string }).kind === "replayed");
        const own = results.filter((answer) => (answer as { kind: string }).kind === "executed");
        // Whoever ran and is not on record was told to be lost; all others have the result that is.
        const lost = processes.flatMap((one) => one.of("completion-lost"));
        expect(
          new Set(replayed.map((answer) => (answer as { result: string }).result)).size,
        ).toBeLessThanOrEqual(1);
        expect(own.length).toBe(stored.length + lost.length);
        if (replayed.length > 0) expect(stored).toHaveLength(1);
        const refusals = answers.filter((answer) => typeof answer === "string");
        for (const refusal of refusals) expect(["ATTEMPT_FAILED", "IN_FLIGHT"]).toContain(refusal);
        expectNothingLeft(processes);
      }),
    );
  });

  it("under at-most-once start once, whoever lapses", async () => {
    await holds(
      fc.asyncProperty(fc.scheduler(), anyCallers, anyLosses, async (scheduler, callers, losses) => {
        const { answers, processes } = await play(scheduler, callers, losses, "at-most-once");
        expect(processes.flatMap((one) => one.of("claimed"))).toHaveLength(1);
        expect(processes.flatMap((one) => one.of("takeover"))).toEqual([]);
        const refusals = answers.filter((answer) => typeof answer === "string");
        for (const refusal of refusals) expect(["OUTCOME_UNKNOWN", "IN_FLIGHT"]).toContain(refusal);
        expectNothingLeft(processes);
      }),
    );
  });
});
