import { describe, expect, it } from "vitest";
import { isOncekeyError, notPerformed, type OncekeyError, ReplayedError } from "../../src/core/errors.js";
import { codeOf, declined, keyOf, leftovers, slowWork, world } from "./processes.js";

const throwing = (error: unknown) => () => {
  throw error;
};

describe("at-least-once", () => {
  it("a throw frees the key, reaches its caller as it is, and the work can run again", async () => {
    const { process, wire } = world();
    expect(await codeOf(process.run({}, throwing(declined)))).toBe(declined);
    expect(await wire.store.find(keyOf())).toBeUndefined();
    expect(process.of("released")).toHaveLength(1);
    expect(await process.run({ input: "other" }, () => "done")).toMatchObject({
      kind: "executed",
      attempt: 1,
    });
    expect(process.of("finished").map(({ outcome }) => outcome)).toEqual(["released", "executed"]);
  });

  it("anything can be thrown, also nothing", async () => {
    const { process } = world();
    for (const thrown of [undefined, null, 0, "text", { code: 7 }, Object.create(null)]) {
      const caught = await process.run({}, throwing(thrown)).then(
        () => "returned",
        (error: unknown) => [error],
      );
      expect(caught).toEqual([thrown]);
    }
  });

  it("notes the code of what was thrown, bounded, never its message", async () => {
    const { process } = world();
    const error = Object.assign(new Error("card 4242"), { code: "E".repeat(200) });
    await codeOf(process.run({}, throwing(error)));
    expect(process.of("released")).toMatchObject([{ code: "E".repeat(64) }]);
    expect(JSON.stringify(process.events)).not.toContain("4242");
  });
});

describe("at-most-once", () => {
  const policy = { guarantee: "at-most-once" } as const;

  it("a throw after the effect does not run the work again: the outcome is unknown", async () => {
    const { process, wire, clock } = world(policy);
    let charged = 0;
    const charge = () => {
      charged += 1;
      throw declined;
    };
    expect(await codeOf(process.run({}, charge))).toBe(declined);
    expect(await codeOf(process.run({}, charge))).toBe("OUTCOME_UNKNOWN");
    expect(await wire.store.find(keyOf())).toMatchObject({ state: "unknown", expiresInMs: undefined });
    await clock.advance(10 * 86_400_000);
    expect(await codeOf(process.run({}, charge))).toBe("OUTCOME_UNKNOWN");
    expect(charged).toBe(1);
    expect(process.of("finished").map(({ outcome }) => outcome)).toEqual(Array(3).fill("outcome_unknown"));
  });

  it("work that says it did nothing frees the key", async () => {
    const { process, wire } = world(policy);
    const cause = new Error("refused");
    const error = await process
      .run({}, throwing(notPerformed("card network refused", cause)))
      .catch((thrown: unknown) => thrown);
    expect(isOncekeyError(error, "NOT_PERFORMED")).toBe(true);
    expect((error as Error).cause).toBe(cause);
    expect(await wire.store.find(keyOf())).toBeUndefined();
    expect(await process.run({}, () => "done")).toMatchObject({ kind: "executed" });
  });

  it("needs a store that keeps what it acknowledged, or somebody who takes the risk", async () => {
    const { process } = world({ acceptsLostWrites: false });
    const error = await process.run(policy, () => "ran").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "CONFIGURATION_INVALID" });
    expect((error as OncekeyError).problems[0]).toMatch(/processCrash.*powerLoss/);
  });
});

describe("keep", () => {
  it("decides which endings are kept: a kept error is replayed as name, message and code", async () => {
    const { process } = world({ keep: () => true });
    const error = Object.assign(new RangeError("out of stock"), { code: "STOCK" });
    expect(await codeOf(process.run({}, throwing(error)))).toBe(error);
    const again = await process.run({}, () => "ran").catch((thrown: unknown) => thrown);
    expect(again).toBeInstanceOf(ReplayedError);
    expect(again).toMatchObject({
      name: "RangeError",
      message: "out of stock",
      code: "STOCK",
      replayed: true,
    });
  });

  it("can refuse to keep a returned value, which frees the key and goes to its caller", async () => {
    const { process } = world({ keep: (ending) => ending.kind === "returned" && ending.value !== "busy" });
    expect(await process.run({}, () => "busy")).toMatchObject({ kind: "executed", result: "busy" });
    expect(await process.run({}, () => "done")).toMatchObject({ kind: "executed", result: "done" });
    expect(await process.run({}, () => "again")).toMatchObject({ kind: "replayed", result: "done" });
  });

  it("that throws turns no success into an error: what was returned is kept, what was thrown is not", async () => {
    const { process } = world({ keep: throwing(new Error("bug")) });
    expect(await process.run({}, () => "done")).toMatchObject({ kind: "executed", result: "done" });
    expect(await process.run({}, () => "again")).toMatchObject({ kind: "replayed" });
    expect(await codeOf(process.run({ key: 2 }, throwing(declined)))).toBe(declined);
    expect(await process.run({ key: 2 }, () => "done")).toMatchObject({ kind: "executed" });
    expect(process.of("warning").length).toBeGreaterThan(0);
  });
});

describe("maxAttempts", () => {
  it("counts first runs, retries and takeovers, and refuses the key then", async () => {
    const { process, another, wire, clock } = world({ maxAttempts: 3 });
    const seen: number[] = [];
    const failing = ({ attempt }: { readonly attempt: number }) => {
      seen.push(attempt);
      throw Object.assign(new Error("declined"), { code: "DECLINED" });
    };
    await codeOf(process.run({}, failing));
    wire.on("extend", () => new Promise(() => undefined));
    void another().run({}, () => new Promise(() => undefined));
    await clock.advance(30_000);
    wire.on("extend", undefined);
    const third = codeOf(process.run({}, failing));
    await clock.settle();
    await third;
    expect(seen).toEqual([1, 3]);
    const refused = await process.run({}, failing).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "ATTEMPTS_EXHAUSTED", retryable: false });
    expect(await wire.store.find(keyOf())).toMatchObject({
      state: "released",
      attempt: 3,
      lastCode: "DECLINED",
    });
  });

  it("forgets the fingerprint of what failed, so a corrected request may use the key", async () => {
    const { process } = world({ maxAttempts: 2 });
    await codeOf(process.run({ input: "wrong" }, throwing(declined)));
    expect(await process.run({ input: "right" }, () => "done")).toMatchObject({
      kind: "executed",
      attempt: 2,
    });
  });

  it("counts for the retention, then begins anew", async () => {
    const { process, clock } = world({ maxAttempts: 1, retentionMs: 60_000 });
    await codeOf(process.run({}, throwing(declined)));
    expect(await codeOf(process.run({}, () => "ran"))).toBe("ATTEMPTS_EXHAUSTED");
    await clock.advance(60_000);
    expect(await process.run({}, () => "done")).toMatchObject({ attempt: 1 });
  });

  it("tells everybody who waits when it is reached", async () => {
    const { process, another, clock } = world({ maxAttempts: 1 });
    const { starts, work } = slowWork();
    const leader = codeOf(process.run({}, work));
    await clock.settle();
    const repeats = [process, process, another()].map((one) => codeOf(one.run({}, work)));
    await clock.settle();
    starts[0]?.reject(declined);
    await clock.advance(10);
    await leader;
    expect(await Promise.all(repeats)).toEqual(Array(3).fill("ATTEMPTS_EXHAUSTED"));
    expect(starts).toHaveLength(1);
  });
});

describe("what a call gives its work", () => {
  it("a key for other services that depends on identity and name alone", async () => {
    const { process, another } = world();
    const keys: string[] = [];
    const note = (fail: boolean) => (work: { downstreamKey(name: string): string }) => {
      keys.push(work.downstreamKey("stripe"));
      if (fail) throw declined;
      return work.downstreamKey("mail");
    };
    await codeOf(process.run({ input: 1 }, note(true)));
    const { result } = await another().run({ input: 2 }, note(false));
    expect(keys[0]).toBe(keys[1]);
    expect(keys[0]).toMatch(/^[\w-]{43}$/);
    expect(result).not.toBe(keys[0]);
    await process.run({ key: "other" }, note(false));
    expect(keys[2]).not.toBe(keys[0]);
  });
});

describe("events", () => {
  it("of a listener that throws, or whose promise rejects, harm nobody", async () => {
    const { emitterOf } = await import("../../src/core/events.js");
    const emit = emitterOf(throwing(new Error("bug")));
    expect(() => emit({ type: "warning", text: "x" })).not.toThrow();
    const late = emitterOf((() => Promise.reject(new Error("bug"))) as () => void);
    late({ type: "warning", text: "x" });
    await new Promise((resolve) => setImmediate(resolve));
  });

  it("name each call's outcome exactly once, also of calls that could not be identified", async () => {
    const { process } = world();
    await codeOf(process.run({ key: undefined }, () => "ran"));
    await codeOf(process.run({ scope: undefined }, () => "ran"));
    await codeOf(process.run({ key: [null, null] as never }, () => "ran"));
    await process.run({}, () => "ran");
    await process.run({}, () => "ran");
    expect(process.of("finished").map(({ outcome }) => outcome)).toEqual([
      "missing_key",
      "missing_scope",
      "missing_key",
      "executed",
      "replayed",
    ]);
    expect(process.of("rejected").map(({ code }) => code)).toEqual([
      "KEY_MISSING",
      "SCOPE_MISSING",
      "KEY_MISSING",
    ]);
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
  });
});
