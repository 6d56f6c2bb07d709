/**
 * @module
 * Every order in which callers of one key and an operator who takes it away, forgets it or says what happened can meet.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isOncekeyError } from "../../src/core/errors.js";
import { createIdempotency } from "../../src/core/idempotency.js";
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

const anyCallers = severalOf(
  fc.record({
    process: fc.constantFrom(0 as const, 1 as const),
    work: fc.constantFrom("returns" as const, "returns" as const, "throws" as const),
  }),
);

const anyActions = fc.array(
  fc.record({
    action: fc.constantFrom("release" as const, "forget" as const, "resolve" as const),
    evenIfLive: fc.boolean(),
  }),
  { minLength: 1, maxLength: 3 },
);

const TARGET = { operation: "op", key: "k" } as const;
/** Whoever comes to a key that has been taken away, or finds no answer in time, hears one of these. */
const REFUSALS = ["ATTEMPT_FAILED", "IN_FLIGHT", "STORE_UNAVAILABLE", "OUTCOME_UNKNOWN"];

type Actions = typeof anyActions extends fc.Arbitrary<infer T> ? T : never;
type Callers = typeof anyCallers extends fc.Arbitrary<infer T> ? T : never;

async function play(
  scheduler: fc.Scheduler,
  callers: Callers,
  actions: Actions,
  faults: Parameters<typeof scheduled>[1],
) {
  const line = scheduled(scheduler, faults);
  const { clock, line: wired, processes } = processesOn(line, 2, { onInFlight: { waitMs: 4_000 } });
  const operator = createIdempotency({ store: wired.store, clock, scope: "global" });
  const returned: string[] = [];
  const applied: string[] = [];
  let pending = callers.length + actions.length;
  const answered = <T>(call: Promise<T>): Promise<T> =>
    call.finally(() => {
      pending -= 1;
    });
  const calls = callers.map((caller, index) =>
    answered(
      codeOf(
        (processes[caller.process] ?? processes[0])?.run({}, async () => {
          await scheduler.schedule(Promise.resolve(), `work of ${index} ends`);
          if (caller.work === "throws") throw declined;
          returned.push(`result of ${index}`);
          return `result of ${index}`;
        }) ?? Promise.resolve(),
      ),
    ),
  );
  const acted = actions.map(async ({ action, evenIfLive }) => {
    await scheduler.schedule(Promise.resolve(), `the operator: ${action}`);
    const note = { by: "ops", reason: "test", evenIfLive };
    const said = { kind: "done", result: "said by the operator" } as const;
    const act = action === "resolve" ? operator.resolve(TARGET, said, note) : operator[action](TARGET, note);
    const outcome = await answered(act.catch((error: unknown) => error));
    if (!isOncekeyError(outcome))
      applied.push(...((outcome as { kind: string }).kind === "applied" ? [action] : []));
    else expect(["CLAIM_LIVE", "RECORD_CHANGED", "STORE_UNAVAILABLE"]).toContain(outcome.code);
  });
  await drain(scheduler, clock, () => pending === 0);
  await Promise.all(acted);
  const answers = await Promise.all(calls);
  wired.all(undefined);
  for (let n = 0; n < 5; n++) {
    while (scheduler.count() > 0) await scheduler.waitOne();
    await clock.advance(7_000);
  }
  const last = codeOf(processes[0]?.run({}, () => "afterwards") ?? Promise.resolve());
  await clock.advance(5_000);
  return { answers, returned, applied, processes, last: await last };
}

describe("callers of one key and an operator, in any order of calls and answers", () => {
  it("end with one record, which whoever comes afterwards follows, and leave nobody waiting", async () => {
    await holds(
      fc.asyncProperty(
        fc.scheduler(),
        anyCallers,
        anyActions,
        anyFaults,
        async (scheduler, callers, actions, faults) => {
          const { answers, returned, processes, last } = await play(scheduler, callers, actions, faults);
          const known = [...returned, "said by the operator", "afterwards"];
          for (const answer of [...answers, last]) {
            if (answer === declined) continue;
            if (typeof answer === "string") expect(REFUSALS).toContain(answer);
            else expect(known).toContain((answer as { result: string }).result);
          }
          expect(last).toMatchObject({ kind: expect.stringMatching(/executed|replayed/) });
          expectNothingLeft(processes);
        },
      ),
    );
  });

  it("start the work again only as often as the key was freed, and keep the first outcome until it is forgotten", async () => {
    await holds(
      fc.asyncProperty(fc.scheduler(), anyCallers, anyActions, async (scheduler, callers, actions) => {
        const { returned, applied, processes } = await play(scheduler, callers, actions, []);
        expect(returned.length).toBeLessThanOrEqual(1 + applied.length);
        const stored = processes.flatMap((one) => one.of("completed")).length;
        const times = (action: string) => applied.filter((one) => one === action).length;
        expect(stored + times("resolve")).toBeLessThanOrEqual(1 + times("forget"));
      }),
    );
  });
});
