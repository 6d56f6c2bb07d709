/**
 * Steps at an end: of their work, of the store, of the process.
 */
import { describe, expect, it } from "vitest";
import { closeEngine } from "../../src/core/assembly.js";
import { stepKeyOf } from "../../src/core/key.js";
import type { Work } from "../../src/core/work.js";
import { codeOf, declined, deferred, firstly, gate, keyOf, leftovers, refused, world } from "./processes.js";

const LEASE_MS = 30_000;
const PAY = stepKeyOf(keyOf(), "pay");

describe("work that has ended", () => {
  it("begins no further step: its key may be another's by now", async () => {
    const place = world();
    const standing = gate();
    const [steps, ends] = [[] as string[], deferred()];
    let [sent, late] = [Promise.resolve<unknown>(undefined), Promise.resolve<unknown>(undefined)];
    const call = place.process.run({}, async ({ step }) => {
      place.wire.on("claim", standing.interference);
      sent = codeOf(step("sent before", () => steps.push("sent before")));
      late = ends.promise.then(() => codeOf(step("after", () => steps.push("after"))));
      throw declined;
    });
    expect(await codeOf(call)).toBe(declined);
    standing.open();
    ends.resolve();
    expect([await sent, await late]).toEqual(["LEASE_LOST", "LEASE_LOST"]);
    await place.clock.settle();
    expect(steps).toEqual([]);
    expect(await place.wire.store.find(stepKeyOf(keyOf(), "sent before"))).toBeUndefined();
  });
});

describe("a store that fails", () => {
  const work = async ({ step }: Work) => {
    await step("pay", () => "paid");
    throw declined;
  };

  it("when a step is to be claimed: it does not start, its work fails, and nothing is left of it", async () => {
    const place = world();
    const starts: string[] = [];
    const call = codeOf(
      place.process.run({}, ({ step }) => {
        place.wire.on("claim", refused);
        return step("pay", () => starts.push("pays"));
      }),
    );
    await place.clock.advance(2_000);
    expect(await call).toBe("STORE_UNAVAILABLE");
    place.wire.on("claim", undefined);
    await place.clock.advance(LEASE_MS);
    expect(leftovers(place.process)).toEqual({ here: 0, waiting: 0 });
    expect([starts, await place.wire.store.find(PAY)]).toEqual([[], undefined]);
  });

  it("when a step is to be completed: its work goes on, and a later attempt has the result", async () => {
    const place = world();
    place.wire.on("complete", firstly(1, refused));
    expect(await codeOf(place.process.run({}, work))).toBe(declined);
    expect(place.process.of("completion-failed")).toMatchObject([{ operation: "op/pay", willRetry: true }]);
    await place.clock.advance(5_000);
    expect((await place.wire.store.find(PAY))?.state).toBe("completed");
  });
});

describe("a process that closes", () => {
  it("lets its work finish, with the steps that are still to come", async () => {
    const place = world();
    const closing = deferred();
    const call = place.process.run({}, async ({ step }) => {
      await step("pay", () => "paid");
      await closing.promise;
      return step("ship", () => "shipped");
    });
    await place.clock.settle();
    const closed = closeEngine(place.process.engine, 10_000);
    expect(await codeOf(place.process.run({ key: "new" }, () => 1))).toBe("CLOSING");
    closing.resolve();
    expect(await call).toMatchObject({ kind: "executed", result: "shipped" });
    expect(await closed).toEqual({ unfinishedWork: 0, unlandedCompletions: 0 });
  });
});
