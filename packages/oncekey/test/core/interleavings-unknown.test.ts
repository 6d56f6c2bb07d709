/**
 * @module
 * Every order in which callers and reconcilers of one key can meet: with a reconciler that tells the truth, what must
 * happen at most once does, whatever is lost on the way.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Policy } from "../../src/core/policy.js";
import { codeOf, declined } from "./processes.js";
import {
  anyFaults,
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
  readonly process: 0 | 1;
  readonly work: "charges" | "throws" | "charges and throws";
}

const anyCaller: fc.Arbitrary<Caller> = fc.record({
  process: fc.constantFrom(0 as const, 1 as const),
  work: fc.constantFrom("charges" as const, "throws" as const, "charges and throws" as const),
});

describe("callers and reconcilers of one key, in any order of calls and answers", () => {
  it("charge at most once, and all who get a result get the same", async () => {
    await holds(
      fc.asyncProperty(
        fc.scheduler(),
        severalOf(anyCaller),
        anyFaults,
        async (scheduler, callers, faults) => {
          let charges = 0;
          let running = 0;
          let mostAtOnce = 0;
          const policy: Policy = {
            guarantee: "at-most-once",
            onInFlight: { waitMs: 4_000 },
            onLapsed: async () => {
              const charged = charges > 0;
              await scheduler.schedule(Promise.resolve(), "the reconciler answers");
              return charged
                ? ({ kind: "done", result: "charged" } as const)
                : ({ kind: "not-done" } as const);
            },
          };
          const { clock, processes } = processesOn(scheduled(scheduler, faults), 2, policy);
          let answered = 0;
          const calls = callers.map(async (caller, index) => {
            const work = async (): Promise<string> => {
              running += 1;
              mostAtOnce = Math.max(mostAtOnce, running);
              await scheduler.schedule(Promise.resolve(), `work of ${index} begins`);
              if (caller.work !== "throws") charges += 1;
              await scheduler.schedule(Promise.resolve(), `work of ${index} ends`);
              running -= 1;
              if (caller.work !== "charges") throw declined;
              return "charged";
            };
            const answer = await codeOf(processes[caller.process]?.run({}, work) ?? Promise.resolve());
            answered += 1;
            return answer;
          });
          await drain(scheduler, clock, () => answered === callers.length);
          const answers = await Promise.all(calls);
          expect(charges).toBeLessThanOrEqual(1);
          expect(mostAtOnce).toBeLessThanOrEqual(1);
          for (const answer of answers) {
            if (typeof answer === "object" && answer !== declined) {
              expect(answer).toMatchObject({ result: "charged" });
            }
          }
          expectNothingLeft(processes);
        },
      ),
    );
  });
});
