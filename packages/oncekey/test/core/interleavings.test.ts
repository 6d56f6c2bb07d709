/**
 * @module
 * Every order in which calls to a store can land and be answered, as far as fast-check gets in its time.
 *
 * Two processes and up to four callers share one key. Each call of the store stands before it until the scheduler lets
 * it through, and stands again before its answer is heard; some are lost on the way there or back.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Policy } from "../../src/core/policy.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { codeOf, declined, keyOf, leftovers, type Process, startProcess, wire } from "./processes.js";
import { anyFault, drain, type Fault, noticeUnhandledRejections, RUNS, scheduled } from "./scheduled.js";

noticeUnhandledRejections();

interface Caller {
  readonly process: 0 | 1;
  /** What each start of its work does. */
  readonly work: "returns" | "throws";
  readonly leavesEarly: boolean;
}

const anyCaller: fc.Arbitrary<Caller> = fc.record({
  process: fc.constantFrom(0 as const, 1 as const),
  work: fc.constantFrom("returns" as const, "returns" as const, "throws" as const),
  leavesEarly: fc.boolean(),
});

interface Played {
  readonly processes: readonly Process[];
  readonly answers: readonly unknown[];
  /** Values that work has returned, one per start that did. */
  readonly effects: readonly string[];
  readonly mostAtOnce: number;
  readonly left: { readonly state: string } | undefined;
}

async function play(
  scheduler: fc.Scheduler,
  callers: readonly Caller[],
  faults: readonly Fault[],
  policy: Policy,
): Promise<Played> {
  const clock = manualClock();
  const line = wire(memoryStore({ clock, sweepIntervalMs: 0 }));
  line.all(scheduled(scheduler, faults));
  const shared = { onInFlight: { waitMs: 4_000 }, acceptsLostWrites: true, ...policy };
  const processes = [0, 1].map(() => startProcess({ store: line.store, clock, policy: shared }));
  const effects: string[] = [];
  let running = 0;
  let mostAtOnce = 0;
  let answered = 0;
  const calls = callers.map(async (caller, index) => {
    const client = new AbortController();
    if (caller.leavesEarly) void scheduler.schedule(Promise.resolve()).then(() => client.abort(declined));
    const work = async (): Promise<string> => {
      running += 1;
      mostAtOnce = Math.max(mostAtOnce, running);
      await scheduler.schedule(Promise.resolve(), `work of ${index} ends`);
      running -= 1;
      if (caller.work === "throws") throw declined;
      effects.push(`result of ${index}`);
      return `result of ${index}`;
    };
    const one = processes[caller.process] as Process;
    const answer = await codeOf(one.run({ signal: client.signal }, work));
    answered += 1;
    return answer;
  });
  const idle = () => answered === callers.length;
  await drain(scheduler, clock, idle);
  const answers = await Promise.all(calls);
  // What goes on in the background gets a working store, and one lease.
  line.all(undefined);
  for (let n = 0; n < 5; n++) {
    while (scheduler.count() > 0) await scheduler.waitOne();
    await clock.advance(7_000);
  }
  const left = await line.store.find(keyOf());
  return { processes, answers, effects, mostAtOnce, left };
}

const results = (answers: readonly unknown[]): string[] =>
  answers.flatMap((answer) =>
    typeof answer === "object" && answer !== null && "result" in answer ? [String(answer.result)] : [],
  );

describe("callers of one key, in any order of calls and answers", () => {
  it("without faults: one effect, one holder at a time, equal results, nothing left over", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(anyCaller, { minLength: 2, maxLength: 4 }),
        async (scheduler, callers) => {
          const { processes, answers, effects, mostAtOnce, left } = await play(scheduler, callers, [], {});
          expect(mostAtOnce).toBe(1);
          expect(effects.length).toBeLessThanOrEqual(1);
          expect(new Set(results(answers))).toEqual(new Set(effects));
          const allowed = [declined, "ATTEMPT_FAILED"];
          for (const answer of answers) {
            if (results([answer]).length === 0) expect(allowed).toContain(answer);
          }
          if (effects.length > 0) expect(left?.state).toBe("completed");
          else expect(left).toBeUndefined();
          for (const one of processes) expect(leftovers(one)).toEqual({ here: 0, waiting: 0 });
        },
      ),
      { numRuns: RUNS },
    );
  });

  it("with calls lost on the way there or back: still one effect, and nobody is left hanging", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(anyCaller, { minLength: 2, maxLength: 4 }),
        fc.array(anyFault, { minLength: 1, maxLength: 30 }),
        async (scheduler, callers, faults) => {
          const played = await play(scheduler, callers, faults, {});
          const { processes, answers, effects, mostAtOnce, left } = played;
          expect(mostAtOnce).toBeLessThanOrEqual(1);
          expect(effects.length).toBeLessThanOrEqual(1);
          expect(results(answers).every((result) => effects.includes(result))).toBe(true);
          expect(answers).toHaveLength(callers.length);
          if (effects.length > 0) expect(left?.state).toBe("completed");
          // Whoever was refused left no claim behind, and whoever failed has freed the key.
          else expect(left).toBeUndefined();
          for (const one of processes) expect(leftovers(one)).toEqual({ here: 0, waiting: 0 });
        },
      ),
      { numRuns: RUNS },
    );
  });

  it("under at-most-once: work is started once, whatever is lost", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(anyCaller, { minLength: 2, maxLength: 4 }),
        fc.array(anyFault, { minLength: 1, maxLength: 30 }),
        async (scheduler, callers, faults) => {
          const policy = { guarantee: "at-most-once" } as const;
          const { processes, effects, mostAtOnce, answers } = await play(scheduler, callers, faults, policy);
          const starts = processes.flatMap((one) => one.of("claimed"));
          expect(starts.length).toBeLessThanOrEqual(1);
          expect(processes.flatMap((one) => one.of("takeover"))).toEqual([]);
          expect(mostAtOnce).toBeLessThanOrEqual(1);
          expect(new Set(results(answers)).size).toBeLessThanOrEqual(1);
          expect(effects.length).toBeLessThanOrEqual(1);
          for (const one of processes) expect(leftovers(one)).toEqual({ here: 0, waiting: 0 });
        },
      ),
      { numRuns: RUNS },
    );
  });

  it("where failed attempts refuse their waiters: whoever is refused learns it at once", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(anyCaller, { minLength: 2, maxLength: 4 }),
        async (scheduler, callers) => {
          const policy = { onInFlight: { waitMs: 4_000, onReleased: "refuse" } } as const;
          const { answers, effects, mostAtOnce, processes } = await play(scheduler, callers, [], policy);
          expect(mostAtOnce).toBe(1);
          expect(effects.length).toBeLessThanOrEqual(1);
          for (const answer of answers) {
            if (results([answer]).length === 0) expect([declined, "ATTEMPT_FAILED"]).toContain(answer);
          }
          for (const one of processes) expect(leftovers(one)).toEqual({ here: 0, waiting: 0 });
        },
      ),
      { numRuns: RUNS },
    );
  });
});
