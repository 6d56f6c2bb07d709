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
import { codeOf, declined, keyOf, type Process } from "./processes.js";
import {
  anyFaults,
  drain,
  expectNothingLeft,
  type Fault,
  holds,
  noticeUnhandledRejections,
  processesOn,
  scheduled,
  severalOf,
} from "./scheduled.js";

noticeUnhandledRejections();

interface Caller {
  readonly process: 0 | 1;
  /** What each start of its work does. */
  readonly work: "returns" | "throws";
  readonly leavesEarly: boolean;
}

const anyCallers = severalOf<Caller>(
  fc.record({
    process: fc.constantFrom(0 as const, 1 as const),
    work: fc.constantFrom("returns" as const, "returns" as const, "throws" as const),
    leavesEarly: fc.boolean(),
  }),
);

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
  const { clock, line, processes } = processesOn(scheduled(scheduler, faults), 2, {
    onInFlight: { waitMs: 4_000 },
    ...policy,
  });
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
    await holds(
      fc.asyncProperty(fc.scheduler(), anyCallers, async (scheduler, callers) => {
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
        expectNothingLeft(processes);
      }),
    );
  });

  it("with calls lost on the way there or back: still one effect, and nobody is left hanging", async () => {
    await holds(
      fc.asyncProperty(fc.scheduler(), anyCallers, anyFaults, async (scheduler, callers, faults) => {
        const played = await play(scheduler, callers, faults, {});
        const { processes, answers, effects, mostAtOnce, left } = played;
        expect(mostAtOnce).toBeLessThanOrEqual(1);
        expect(effects.length).toBeLessThanOrEqual(1);
        expect(results(answers).every((result) => effects.includes(result))).toBe(true);
        expect(answers).toHaveLength(callers.length);
        if (effects.length > 0) expect(left?.state).toBe("completed");
        // Whoever was refused left no claim behind, and whoever failed has freed the key.
        else expect(left).toBeUndefined();
        expectNothingLeft(processes);
      }),
    );
  });

  it("under at-most-once: work is started once, whatever is lost", async () => {
    await holds(
      fc.asyncProperty(fc.scheduler(), anyCallers, anyFaults, async (scheduler, callers, faults) => {
        const policy = { guarantee: "at-most-once" } as const;
        const { processes, effects, mostAtOnce, answers } = await play(scheduler, callers, faults, policy);
        const starts = processes.flatMap((one) => one.of("claimed"));
        expect(starts.length).toBeLessThanOrEqual(1);
        expect(processes.flatMap((one) => one.of("takeover"))).toEqual([]);
        expect(mostAtOnce).toBeLessThanOrEqual(1);
        expect(new Set(results(answers)).size).toBeLessThanOrEqual(1);
        expect(effects.length).toBeLessThanOrEqual(1);
        expectNothingLeft(processes);
      }),
    );
  });

  it("where failed attempts refuse their waiters: whoever is refused learns it at once", async () => {
    await holds(
      fc.asyncProperty(fc.scheduler(), anyCallers, async (scheduler, callers) => {
        const policy = { onInFlight: { waitMs: 4_000, onReleased: "refuse" } } as const;
        const { answers, effects, mostAtOnce, processes } = await play(scheduler, callers, [], policy);
        expect(mostAtOnce).toBe(1);
        expect(effects.length).toBeLessThanOrEqual(1);
        for (const answer of answers) {
          if (results([answer]).length === 0) expect([declined, "ATTEMPT_FAILED"]).toContain(answer);
        }
        expectNothingLeft(processes);
      }),
    );
  });
});
