import { describe, expect, it } from "vitest";
import { isOncekeyError } from "../../src/core/errors.js";
import { createIdempotency } from "../../src/core/idempotency.js";
import type { Store } from "../../src/core/store.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { answerLost, codeOf, type Interference, leftovers, refused, silent, world } from "./processes.js";

const faults: [string, Interference][] = [
  [
    "throws",
    () => {
      throw new TypeError("not connected");
    },
  ],
  ["rejects", refused],
  ["hangs", silent],
  ["loses the answer", answerLost],
];

describe("a store that misbehaves while an outcome is being found out", () => {
  for (const method of ["reconcile", "resolve"] as const) {
    it.each(faults)(
      `%s in ${method}: everybody is answered in time, the work starts at most once`,
      async (_, fault) => {
        const place = world({
          guarantee: "at-most-once",
          onLapsed: () => ({ kind: "not-done" }),
          onInFlight: { waitMs: 3_000 },
        });
        const { process: one, wire, clock, another } = place;
        const dead = another();
        wire.on("extend", silent);
        void codeOf(dead.run({}, () => new Promise(() => undefined)));
        await clock.advance(61_000);
        wire.on("extend", undefined);
        wire.on(method, fault);
        let ran = 0;
        const work = () => {
          ran += 1;
          return "done";
        };
        const two = another();
        const calls = [one, one, two, two].map((each) => codeOf(each.run({}, work)));
        for (let turn = 0; turn < 24; turn++) await clock.advance(500);
        for (const answer of await Promise.all(calls)) {
          if (typeof answer === "object") expect(answer).toMatchObject({ result: "done" });
          else
            expect(["STORE_UNAVAILABLE", "IN_FLIGHT", "OUTCOME_UNKNOWN", "ATTEMPT_FAILED"]).toContain(answer);
        }
        wire.on(method, undefined);
        await clock.advance(40_000);
        const last = codeOf(one.run({}, work));
        await clock.advance(4_000);
        expect(await last).toMatchObject({ result: "done" });
        expect(ran).toBe(1);
        expect([leftovers(one), leftovers(two)]).toEqual(Array(2).fill({ here: 0, waiting: 0 }));
      },
    );
  }
});

describe("a store that misbehaves for an operator", () => {
  const by = { by: "ops", reason: "test" };
  const target = { operation: "charge", key: "k", scope: "s" };
  type Instance = ReturnType<typeof createIdempotency>;
  const calls: [keyof Store, (instance: Instance) => Promise<unknown>][] = [
    ["find", (instance) => instance.find(target)],
    ["list", (instance) => instance.list()],
    ["resolve", (instance) => instance.release(target, { ...by, evenIfLive: true })],
    ["resolve", (instance) => instance.forget(target, { ...by, evenIfLive: true })],
    ["resolve", (instance) => instance.resolve(target, { kind: "not-done" }, { ...by, evenIfLive: true })],
    ["list", (instance) => instance.reconcileUnknown()],
  ];

  it.each(faults)("%s in any call: a coded error in time, and no word about the result", async (_, fault) => {
    for (const [method, call] of calls) {
      const clock = manualClock();
      const sound = memoryStore({ clock, sweepIntervalMs: 0 });
      const ask = sound[method] as (request: unknown) => Promise<unknown>;
      const store = { ...sound, [method]: (request: unknown) => fault(request, () => ask(request)) };
      const instance = createIdempotency({ store, clock }) as Instance;
      void instance.run({ ...target, input: 1 }, () => new Promise(() => undefined));
      await clock.settle();
      const asked = call(instance).catch((error: unknown) => error);
      await clock.advance(2_000);
      const error = await asked;
      expect(isOncekeyError(error, "STORE_UNAVAILABLE"), `${method}: ${error}`).toBe(true);
    }
  });
});
