/**
 * Steps of work: what is kept of them, for whom, and what is not.
 */
import { describe, expect, it } from "vitest";
import { OncekeyError } from "../../src/core/errors.js";
import { stepKeyOf } from "../../src/core/key.js";
import { notPerformed } from "../../src/index.js";
import { codeOf, declined, deferred, keyOf, refused, world } from "./processes.js";

const stepKey = (name: string) => stepKeyOf(keyOf(), name);

/** What `promise` rejects with. */
const failureOf = async (promise: Promise<unknown>): Promise<OncekeyError> =>
  promise.then(
    () => Promise.reject(new Error("It did not fail")),
    (error) => error,
  );

/** A step whose starts are counted; its result is how often it has started. */
function counted() {
  const starts: number[] = [];
  return {
    starts,
    start(): { start: number } {
      starts.push(starts.length + 1);
      return { start: starts.length };
    },
  };
}

describe("a step", () => {
  it("that ended is not done again when its work failed after it and comes again", async () => {
    const { process } = world();
    const { starts, start } = counted();
    const failing = process.run({}, async ({ step }) => {
      await step("charge", start);
      throw declined;
    });
    expect(await codeOf(failing)).toBe(declined);
    const again = await process.run({}, ({ step }) => step("charge", start));
    expect(again).toEqual({ kind: "executed", result: { start: 1 }, attempt: 1 });
    expect(starts).toHaveLength(1);
  });

  it("gives a later attempt a copy of its result, without loss, and nothing where it had none", async () => {
    const { process } = world();
    const made = { at: new Date(0), seen: new Set([1n]), bytes: new Uint8Array([1, 2]) };
    await process
      .run({}, async ({ step }) => {
        expect(await step("make", () => made)).toBe(made);
        expect(await step("tell", () => undefined)).toBeUndefined();
        throw declined;
      })
      .catch(() => undefined);
    await process.run({}, async ({ step }) => {
      const copy = await step("make", (): typeof made => Promise.reject(declined) as never);
      expect(copy).toEqual(made);
      expect(copy).not.toBe(made);
      expect(await step("tell", () => "again")).toBeUndefined();
    });
  });

  it("that throws keeps nothing: the throw is the work's, and the step can be tried again at once", async () => {
    const { process } = world({ keep: () => true });
    const result = await process.run({}, async ({ step }) => {
      const first = await codeOf(step("charge", () => Promise.reject(declined)));
      return [first, await step("charge", ({ attempt }) => attempt)];
    });
    expect(result).toMatchObject({ result: [declined, 1] });
    expect(process.of("released")).toMatchObject([{ operation: "op/charge" }]);
  });

  it("throws what its function throws as it is, also one of the library's own refusals", async () => {
    const { process } = world();
    const inFlight = new OncekeyError("IN_FLIGHT", "Somebody else's.");
    const call = process.run({}, ({ step }) => step("ask", () => Promise.reject(inFlight)));
    expect(await failureOf(call)).toBe(inFlight);
  });

  it("is a record of its own, in the scope and for the retention of its work", async () => {
    const { process, clock, wire } = world({ retentionMs: 60_000, keyLabels: true });
    await process.run({}, ({ step }) => step("charge", () => "paid"));
    const [work, step] = await Promise.all([keyOf(), stepKey("charge")].map((key) => wire.store.find(key)));
    expect(step).toMatchObject({ operation: "op/charge", state: "completed", label: "k", attempt: 1 });
    expect(step?.scopeId).toBe(work?.scopeId);
    expect(process.events.filter(({ type }) => type === "finished")).toMatchObject([
      { operation: "op/charge", outcome: "executed" },
      { operation: "op", outcome: "executed" },
    ]);
    await clock.advance(60_001);
    expect(await wire.store.find(stepKey("charge"))).toBeUndefined();
  });

  it("belongs to its work: those of other keys, and of other steps, are others", async () => {
    const { process } = world();
    const names: string[] = [];
    const note = (name: string) => () => void names.push(name);
    for (const key of ["one", "two"]) {
      await process.run({ key }, async ({ step }) => {
        await step("a", async (inner) => {
          await inner.step("b", note(`${key} a, b`));
          await inner.step("a", note(`${key} a, a`));
        });
        await step("a/b", note(`${key} a/b`));
      });
    }
    expect(names).toEqual(["one", "two"].flatMap((key) => [`${key} a, b`, `${key} a, a`, `${key} a/b`]));
  });

  it("goes on inside: a step that failed does not do its own steps again", async () => {
    const { process } = world();
    const { starts, start } = counted();
    const attempt = (fails: boolean) =>
      process.run({}, ({ step }) =>
        step("outer", async (outer) => {
          await outer.step("inner", start);
          if (fails) throw declined;
          return "done";
        }),
      );
    expect(await codeOf(attempt(true))).toBe(declined);
    expect(await attempt(false)).toMatchObject({ result: "done" });
    expect(starts).toHaveLength(1);
  });

  it("runs beside others of other names", async () => {
    const { process } = world();
    const [left, right] = [deferred<number>(), deferred<number>()];
    const call = process.run({}, ({ step }) =>
      Promise.all([step("left", () => left.promise), step("right", () => right.promise)]),
    );
    right.resolve(2);
    left.resolve(1);
    expect(await call).toMatchObject({ result: [1, 2] });
  });

  it("has its own keys for other services, the same over all attempts, and not its work's", async () => {
    const { process } = world();
    const keys: string[] = [];
    for (const _ of [1, 2]) {
      await process
        .run({}, ({ step, downstreamKey }) =>
          step("pay", (inner) => {
            keys.push(inner.downstreamKey("stripe"), downstreamKey("stripe"));
            throw declined;
          }),
        )
        .catch(() => undefined);
    }
    expect(keys[2]).toBe(keys[0]);
    expect(new Set(keys).size).toBe(2);
  });

  it("is no use of its work's key inside itself; one inside it is", async () => {
    const { process } = world();
    const result = await process.run({}, ({ step }) =>
      step("a", async () => [
        (await process.run({ key: "other" }, () => "other")).kind,
        await codeOf(process.run({}, () => "itself")),
      ]),
    );
    expect(result).toMatchObject({ result: ["executed", "KEY_REENTERED"] });
  });

  it("costs nothing where there is none", async () => {
    const { process, wire } = world();
    await process.run({}, () => "done");
    expect(wire.sent.map(({ method }) => method)).toEqual(["claim", "complete"]);
  });

  it("has the options of its work only as far as they are about a part of it", async () => {
    const policy = { onCompleted: "reject", onInFlight: "reject", maxAttempts: 2 } as const;
    const { process } = world(policy);
    const { starts, start } = counted();
    for (const attempt of [1, 2]) {
      const call = process.run({}, async (work) => {
        expect(work.attempt).toBe(attempt);
        expect(await work.step("charge", start)).toEqual({ start: 1 });
        for (const _ of [1, 2, 3]) await codeOf(work.step("ship", () => Promise.reject(declined)));
        throw declined;
      });
      expect(await codeOf(call)).toBe(declined);
    }
    expect(starts).toHaveLength(1);
  });
});

describe("the name of a step", () => {
  it("is used once in an attempt, be it at the same time or later: another part would get its result", async () => {
    const { process } = world();
    const { starts, start } = counted();
    const result = await process.run({}, async ({ step }) => {
      const [one, other] = await Promise.allSettled([step("ship", start), step("ship", start)]);
      const later = await codeOf(step("ship", start));
      return [one.status, other.status, later];
    });
    expect(result).toMatchObject({ result: ["fulfilled", "rejected", "CONFIGURATION_INVALID"] });
    expect(starts).toHaveLength(1);
  });

  it("that is used inside its own step is refused at once, instead of waiting for itself", async () => {
    const { process } = world();
    const call = process.run({}, ({ step }) => step("a", () => codeOf(step("a", () => 1))));
    expect(await call).toMatchObject({ result: "CONFIGURATION_INVALID" });
  });

  it("and its function are checked before anything is claimed", async () => {
    const { process, wire } = world();
    const { start } = counted();
    await process.run({}, async ({ step }) => {
      const untyped = step as (...args: unknown[]) => Promise<unknown>;
      for (const args of [["", start], [7, start], ["x".repeat(256), start], ["a"]]) {
        const { code, problems } = await failureOf(untyped(...args));
        expect([code, problems.length]).toEqual(["CONFIGURATION_INVALID", 1]);
      }
    });
    expect(wire.count("claim")).toBe(1);
  });

  it("is one of ten thousand at most", async () => {
    const { process, wire } = world({ onStoreDown: "run" });
    // Unprotected, ten thousand take no time.
    wire.all(refused);
    const call = process.run({}, async ({ step }) => {
      for (let index = 0; index < 10_000; index++) await step(`step ${index}`, () => index);
      return codeOf(step("one more", () => 1));
    });
    expect(await call).toMatchObject({ result: "CONFIGURATION_INVALID" });
  });
});

describe("a step whose result cannot be had", () => {
  const unkept = () => () => "a function is no data";

  it("because it could not be kept: its own attempt has it, a later one is told, and told why", async () => {
    const { process } = world();
    const first = process.run({}, async ({ step }) => {
      expect((await step("make", unkept))()).toBe("a function is no data");
      throw declined;
    });
    expect(await codeOf(first)).toBe(declined);
    expect(process.of("result-not-kept")).toMatchObject([{ operation: "op/make" }]);
    const error = await failureOf(process.run({}, ({ step }) => step("make", unkept)));
    expect(error).toMatchObject({ code: "STEP_REFUSED", status: 500, retryable: false, completed: false });
    expect(error.cause).toMatchObject({ code: "RESULT_NOT_RETAINED" });
  });

  it("because the key was freed, and used for another request: the first can still go on", async () => {
    const { process } = world();
    const pay = (input: number, fails: boolean) =>
      process.run({ input }, async ({ step }) => {
        const paid = await step("pay", () => input);
        if (fails) throw declined;
        return paid;
      });
    expect(await codeOf(pay(10, true))).toBe(declined);
    const other = await failureOf(pay(20, false));
    expect(other).toMatchObject({ code: "STEP_REFUSED", cause: { code: "KEY_REUSED" } });
    expect(await pay(10, false)).toMatchObject({ result: 10 });
  });

  it("because under at-most-once nobody knows how it ended, unless it says that nothing happened", async () => {
    const { process } = world({ guarantee: "at-most-once" });
    const { starts, start } = counted();
    const call = process.run({}, async ({ step }) => {
      await codeOf(step("refused", () => Promise.reject(notPerformed("closed today"))));
      await codeOf(step("pay", () => Promise.reject(declined)));
      expect(await step("refused", start)).toEqual({ start: 1 });
      return step("pay", start);
    });
    const error = await failureOf(call);
    expect(error).toMatchObject({ code: "STEP_REFUSED", cause: { code: "OUTCOME_UNKNOWN" } });
    expect(starts).toHaveLength(1);
    expect(await codeOf(process.run({}, start))).toBe("OUTCOME_UNKNOWN");
  });
});

describe("steps of work that runs unprotected", () => {
  it("run unprotected too, with the same keys for other services, and leave nothing", async () => {
    const { process, wire, another } = world({ onStoreDown: "run" });
    const keys: string[] = [];
    const work = () =>
      another()
        .run({}, async ({ step }) => {
          await step("pay", (inner) => {
            keys.push(inner.downstreamKey("stripe"));
            return inner.step("log", ({ protected: isProtected }) => keys.push(String(isProtected)));
          });
          throw declined;
        })
        .catch(() => undefined);
    wire.all(refused);
    await work();
    wire.all(undefined);
    expect(wire.count("claim")).toBe(2);
    await process.run({ key: "other" }, () => "the line is mended");
    await work();
    expect(keys).toEqual([keys[0], "false", keys[0], "true"]);
  });
});
