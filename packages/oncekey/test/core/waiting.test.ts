import { describe, expect, it } from "vitest";
import { codeOf, declined, firstly, gate, keyOf, leftovers, slowWork, world } from "./processes.js";

describe("repeats of running work", () => {
  it("wait for it: 1,000 repeats, one run, one claim, and every one has the result", async () => {
    const { process, wire, clock } = world();
    const { starts, work } = slowWork();
    const calls = Array.from({ length: 1_000 }, () => process.run({}, work));
    await clock.advance(200);
    expect(wire.count("claim")).toBe(1);
    starts[0]?.resolve("done");
    await clock.advance(1);
    const answers = await Promise.all(calls);
    expect(answers[0]).toMatchObject({ kind: "executed", result: "done" });
    expect(new Set(answers.slice(1).map(({ kind, result }) => `${kind} ${result}`))).toEqual(
      new Set(["replayed done"]),
    );
    expect(starts).toHaveLength(1);
    expect(wire.sent.map(({ method }) => method)).toEqual(["claim", "complete"]);
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
  });

  it("get a copy, and only the leader the original", async () => {
    const { process, clock } = world();
    const original = { list: [1, 2] };
    const calls = [1, 2, 3].map(() =>
      process.run({}, async () => {
        await Promise.resolve();
        return original;
      }),
    );
    await clock.settle();
    const [leader, second, third] = (await Promise.all(calls)).map(({ result }) => result);
    expect(leader).toBe(original);
    expect(second).toEqual(original);
    expect(second).not.toBe(original);
    expect(third).not.toBe(second);
  });

  it("wait for another process by one registration, and no polling while it is silent", async () => {
    const { process, another, wire, clock } = world();
    const { starts, work } = slowWork();
    const leader = another().run({}, work);
    await clock.settle();
    const repeats = Array.from({ length: 100 }, () => process.run({}, work));
    await clock.advance(400);
    // The first asks, the rest wait for its answer; the room asks once more after it has registered.
    expect(wire.count("claim")).toBe(3);
    starts[0]?.resolve("done");
    await clock.advance(1);
    await leader;
    expect(new Set((await Promise.all(repeats)).map(({ kind }) => kind))).toEqual(new Set(["replayed"]));
    expect(wire.count("status")).toBe(0);
    expect(starts).toHaveLength(1);
  });

  it("are told when the wait runs out, with the remaining lease as Retry-After, between 1 and 5 s", async () => {
    const { process, another, clock } = world({ onInFlight: { waitMs: 1_000 }, leaseMs: 10_000 });
    const { starts, work } = slowWork();
    const leader = another().run({}, work);
    await clock.advance(3_000);
    const repeat = process.run({}, work).catch((error: unknown) => error);
    await clock.advance(1_000);
    expect(await repeat).toMatchObject({ code: "IN_FLIGHT", retryAfterMs: 5_000 });
    expect(process.of("finished")).toMatchObject([{ outcome: "wait_timeout", waitedMs: 1_000 }]);
    starts[0]?.resolve("done");
    await clock.settle();
    await leader;
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
  });

  it("are refused at once where the policy says so", async () => {
    const { process, another, clock } = world({ onInFlight: "reject" });
    const { starts, work } = slowWork();
    const leader = process.run({}, work);
    await clock.settle();
    expect(await codeOf(process.run({}, work))).toBe("IN_FLIGHT");
    const elsewhere = codeOf(another().run({}, work));
    await clock.settle();
    expect(await elsewhere).toBe("IN_FLIGHT");
    starts[0]?.resolve("done");
    await leader;
    expect(process.of("finished").map(({ outcome }) => outcome)).toEqual(["conflict", "executed"]);
  });

  it("are refused at once while the first claim is still under way, where the policy says so", async () => {
    const { process, wire, clock } = world({ onInFlight: "reject" });
    const line = gate();
    wire.on("claim", line.interference);
    const calls = [1, 2].map(() => codeOf(process.run({}, () => "ran")));
    await clock.settle();
    line.open();
    await clock.settle();
    expect((await Promise.all(calls)).filter((answer) => answer === "IN_FLIGHT").length).toBeLessThan(2);
  });

  it("of completed work are refused where onCompleted says so, and do not wait for that", async () => {
    const { process, clock } = world({ onCompleted: "reject" });
    const { starts, work } = slowWork();
    const leader = process.run({}, work);
    await clock.settle();
    expect(await codeOf(process.run({}, work))).toBe("IN_FLIGHT");
    starts[0]?.resolve("done");
    await leader;
    const error = await process.run({}, work).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "ALREADY_COMPLETED", completed: true, retryable: false });
    const waits = { onInFlight: { waitMs: 1_000 } };
    const second = process.run({ key: "k2", ...waits }, work);
    await clock.settle();
    const waiter = codeOf(process.run({ key: "k2", ...waits }, work));
    await clock.settle();
    starts[1]?.resolve("done");
    await second;
    expect(await waiter).toBe("ALREADY_COMPLETED");
  });
});

describe("the bounds of waiting", () => {
  it("are kept per key, per scope and per process; who finds no place is told that it is in flight", async () => {
    const limits = { maxWaitersPerKey: 2, maxWaitersPerScope: 3, maxWaiters: 4 };
    const { process, clock } = world({}, limits);
    const { starts, work } = slowWork();
    const leaders = ["a", "b", "c"].map((key) => process.run({ key, scope: key === "c" ? "x" : "y" }, work));
    const elsewhere = process.run({ key: "c", scope: "z" }, work);
    await clock.settle();
    const join = (key: string, scope: string) => codeOf(process.run({ key, scope }, () => "ran"));
    const waits = [join("a", "y"), join("a", "y")];
    expect(await join("a", "y")).toBe("IN_FLIGHT");
    waits.push(join("b", "y"));
    await clock.settle();
    expect(await join("b", "y")).toBe("IN_FLIGHT");
    waits.push(join("c", "x"));
    await clock.settle();
    expect(await join("c", "z")).toBe("IN_FLIGHT");
    expect(process.engine.waiting.size()).toBe(4);
    for (const start of starts) start.resolve("done");
    await clock.settle();
    await Promise.all([...leaders, elsewhere]);
    expect(
      (await Promise.all(waits)).every((answer) => (answer as { kind: string }).kind === "replayed"),
    ).toBe(true);
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
  });
});

describe("a waiter whose client leaves", () => {
  it("is dropped, and the work goes on", async () => {
    const { process, clock } = world();
    const { starts, work } = slowWork();
    const leader = process.run({}, work);
    await clock.settle();
    const client = new AbortController();
    const repeat = codeOf(process.run({ signal: client.signal }, work));
    await clock.settle();
    client.abort(new Error("client left"));
    expect(await repeat).toEqual(new Error("client left"));
    expect(leftovers(process)).toEqual({ here: 1, waiting: 0 });
    starts[0]?.resolve("done");
    expect(await leader).toMatchObject({ kind: "executed" });
  });

  it("before it has joined never joins", async () => {
    const { process, clock } = world();
    const { starts, work } = slowWork();
    const leader = process.run({}, work);
    await clock.settle();
    const gone = AbortSignal.abort(new Error("client left"));
    expect(await codeOf(process.run({ signal: gone }, work))).toEqual(new Error("client left"));
    starts[0]?.resolve("done");
    await leader;
  });

  it("is passed over when somebody has to take over", async () => {
    const { process, clock } = world();
    const { starts, work } = slowWork();
    const leader = codeOf(process.run({}, work));
    await clock.settle();
    const client = new AbortController();
    const left = codeOf(process.run({ signal: client.signal }, work));
    const stays = process.run({}, work);
    await clock.settle();
    client.abort(new Error("client left"));
    starts[0]?.reject(declined);
    await clock.settle();
    starts[1]?.resolve("done");
    await clock.settle();
    await Promise.all([leader, left]);
    expect(await stays).toMatchObject({ kind: "executed" });
  });

  it("while its claim is under way gives the claim back, and the next one runs, having seen one failure", async () => {
    const { process, wire, clock } = world();
    const { starts, work } = slowWork();
    const leader = codeOf(process.run({}, work));
    await clock.settle();
    const client = new AbortController();
    const left = codeOf(process.run({ signal: client.signal }, work));
    const others = [1, 2].map(() => codeOf(process.run({}, work)));
    await clock.settle();
    const line = gate();
    wire.on("claim", firstly(1, line.interference));
    starts[0]?.reject(declined);
    await clock.settle();
    client.abort(new Error("client left"));
    await clock.settle();
    line.open();
    await clock.advance(10);
    expect(await left).toEqual(new Error("client left"));
    expect(await leader).toBe(declined);
    // Given back is not failed: one of the others runs, and the third has seen one failure only.
    expect(starts).toHaveLength(2);
    starts[1]?.reject(declined);
    await clock.advance(10);
    expect(await Promise.all(others)).toEqual([declined, "ATTEMPT_FAILED"]);
    expect(await wire.store.find(keyOf())).toBeUndefined();
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
  });

  it("keeps the next one from asking until its claim is given back: a claim given back is no failure", async () => {
    const { process, wire, clock } = world();
    const { starts, work } = slowWork();
    const leader = codeOf(process.run({}, work));
    await clock.settle();
    const client = new AbortController();
    const left = codeOf(process.run({ signal: client.signal }, work));
    const others = [1, 2].map(() => process.run({}, work));
    await clock.settle();
    const [claim, release] = [gate(), gate()];
    wire.on("claim", firstly(1, claim.interference));
    starts[0]?.reject(declined);
    await clock.settle();
    wire.on("release", release.interference);
    client.abort(declined);
    claim.open();
    await clock.settle();
    const asked = wire.count("claim");
    await clock.advance(1_000);
    expect(wire.count("claim")).toBe(asked);
    release.open();
    await clock.settle();
    starts[1]?.resolve("done");
    await clock.settle();
    expect(await Promise.all([leader, left])).toEqual([declined, declined]);
    expect((await Promise.all(others)).map(({ kind }) => kind)).toEqual(["executed", "replayed"]);
  });

  it("with nobody behind it leaves no claim", async () => {
    const { process, wire, clock } = world();
    const { starts, work } = slowWork();
    const leader = codeOf(process.run({}, work));
    await clock.settle();
    const client = new AbortController();
    const left = codeOf(process.run({ signal: client.signal }, work));
    await clock.settle();
    const line = gate();
    wire.on("claim", firstly(1, line.interference));
    starts[0]?.reject(declined);
    await clock.settle();
    client.abort();
    line.open();
    await clock.advance(10);
    await Promise.all([leader, left]);
    expect(await wire.store.find(keyOf())).toBeUndefined();
    expect(starts).toHaveLength(1);
  });
});
