import { beforeEach, describe, expect, test } from "vitest";
import type { Verdict } from "../../src/consumers/index.js";
import { answerLost, deferred, refused, silent } from "../core/processes.js";
import { consumers, hello } from "./consumers.js";

let clock: ReturnType<typeof consumers>["clock"];
let line: ReturnType<typeof consumers>["line"];
let effects: ReturnType<typeof consumers>["effects"];
let charge: ReturnType<typeof consumers>["charge"];
let consumer: ReturnType<typeof consumers>["consumer"];

beforeEach(() => {
  ({ clock, line, effects, charge, consumer } = consumers());
});

describe("a handler that fails", () => {
  test("frees the key, is put back longer each time, and runs again", async () => {
    let fails = true;
    const deliver = consumer((m) => {
      if (fails) throw new Error("declined");
      charge(m);
    });
    expect(await deliver(hello, { deliveries: 1 })).toMatchObject({ reason: "failed", delayMs: 1_000 });
    expect(await deliver(hello, { deliveries: 2 })).toMatchObject({ reason: "failed", delayMs: 2_000 });
    fails = false;
    expect(await deliver(hello, { deliveries: 3 })).toMatchObject({ kind: "done", how: "executed" });
  });

  test("is a dead letter with its last attempt, and on any delivery after that, without running", async () => {
    let runs = 0;
    const deliver = consumer(
      () => {
        runs += 1;
        throw new Error(`failure ${runs}`);
      },
      { maxAttempts: 2 },
    );
    expect(await deliver(hello)).toMatchObject({ kind: "put-back", reason: "failed" });
    const last = await deliver(hello);
    expect(last).toMatchObject({
      kind: "dead-letter",
      reason: "attempts-exhausted",
      error: { message: "failure 2" },
    });
    expect(await deliver(hello)).toMatchObject({ kind: "dead-letter", reason: "attempts-exhausted" });
    expect(runs).toBe(2);
  });

  test("for good, by what its policy keeps: a dead letter now and on every repeat", async () => {
    const deliver = consumer(
      () => {
        effects.push("tried");
        throw new TypeError("no such order");
      },
      {
        keep: (ending) =>
          ending.kind === "returned" || (ending.kind === "threw" && ending.error instanceof TypeError),
      },
    );
    for (let n = 0; n < 2; n += 1) {
      expect(await deliver(hello)).toMatchObject({ kind: "dead-letter", reason: "failed-for-good" });
    }
    expect(effects).toHaveLength(1);
  });

  test("under at-most-once: a dead letter, since nobody knows what it did, and never started again", async () => {
    const deliver = consumer(
      (m) => {
        charge(m);
        throw new Error("after the effect");
      },
      { guarantee: "at-most-once" },
    );
    expect(await deliver(hello)).toMatchObject({ kind: "dead-letter", reason: "outcome-unknown" });
    expect(await deliver(hello)).toMatchObject({ kind: "dead-letter", reason: "outcome-unknown" });
    expect(effects).toHaveLength(1);
  });

  test("under at-most-once with somebody to ask: put back, and the next delivery asks", async () => {
    const deliver = consumer(
      (m) => {
        charge(m);
        throw new Error("after the effect");
      },
      { guarantee: "at-most-once", onLapsed: () => ({ kind: "done" }) },
    );
    expect(await deliver(hello)).toMatchObject({ kind: "put-back", reason: "outcome-unknown" });
    expect(await deliver(hello)).toMatchObject({ kind: "done", how: "repeat" });
    expect(effects).toHaveLength(1);
  });

  test("that never ends gives its delivery up after the longest run, the last wait and one lease", async () => {
    const end = deferred();
    const deliver = consumer(() => end.promise, { leaseMs: 10_000, maxRunMs: 60_000 });
    let verdict: Verdict | undefined;
    void deliver(hello).then((found) => {
      verdict = found;
    });
    await clock.advance(69_000);
    expect(verdict).toBeUndefined();
    await clock.advance(1_000);
    expect(verdict).toMatchObject({ kind: "put-back", reason: "ran-too-long" });
    end.resolve();
    await clock.settle();
    expect(await deliver(hello)).toMatchObject({ kind: "done", how: "repeat" });
  });

  test("leaves no timer behind when it ends", async () => {
    const deliver = consumer(async (m) => charge(m));
    await deliver(hello);
    const timers = clock.pending();
    await deliver({ ...hello, id: "m2" });
    expect(clock.pending()).toBe(timers);
  });
});

describe("the store", () => {
  test("is down: put back, nothing runs, and nothing is left in the way afterwards", async () => {
    line.all(refused);
    const deliver = consumer(charge);
    expect(await deliver(hello)).toMatchObject({ kind: "put-back", reason: "store-unavailable" });
    expect(effects).toEqual([]);
    line.all(undefined);
    await clock.advance(30_000);
    expect(await deliver(hello)).toMatchObject({ kind: "done", how: "executed" });
  });

  test("does not answer: put back within the bound", async () => {
    line.all(silent);
    const verdict = consumer(charge)(hello);
    await clock.advance(10_000);
    expect(await verdict).toMatchObject({ kind: "put-back", reason: "store-unavailable" });
  });

  test("is down, and the policy says to run: done unprotected", async () => {
    line.all(refused);
    const verdict = await consumer(charge, { onStoreDown: "run" })(hello);
    expect(verdict).toMatchObject({ kind: "done", how: "unprotected" });
  });

  test("goes down before the completion: done, and a repeat in this process is too", async () => {
    line.on("complete", refused);
    const deliver = consumer(charge);
    expect(await deliver(hello)).toMatchObject({ kind: "done", how: "executed" });
    expect(await deliver(hello)).toMatchObject({ kind: "done", how: "repeat" });
    expect(effects).toHaveLength(1);
  });

  test("loses the answer of a completion that landed: done, once", async () => {
    line.on("complete", answerLost);
    expect(await consumer(charge)(hello)).toMatchObject({ kind: "done" });
    expect(await consumer(charge)(hello)).toMatchObject({ kind: "done", how: "repeat" });
    expect(effects).toHaveLength(1);
  });

  test("keeps no result that is too large: a repeat is acknowledged all the same", async () => {
    const deliver = consumer(() => "x".repeat(100), { maxResultBytes: 10 });
    await deliver(hello);
    expect(await deliver(hello)).toEqual({ kind: "done", how: "repeat", result: undefined });
  });

  test("holds a record that says done, where repeats of done work are refused: acknowledged", async () => {
    const deliver = consumer(charge, { onCompleted: "reject" });
    await deliver(hello);
    expect(await deliver(hello)).toMatchObject({ kind: "done", how: "repeat" });
  });
});
