import { describe, expect, it } from "vitest";
import type { ClaimRequest } from "../../src/core/store.js";
import {
  codeOf,
  declined,
  firstly,
  gate,
  type Interference,
  keyOf,
  leftovers,
  refused,
  slowWork,
  world,
} from "./processes.js";

describe("when the attempt fails", () => {
  it("one waiter takes over and the others wait on: a thousand waiters, two runs", async () => {
    const { process, clock } = world();
    const { starts, work } = slowWork();
    const leader = codeOf(process.run({}, work));
    await clock.settle();
    const repeats = Array.from({ length: 999 }, () => process.run({}, work));
    await clock.advance(100);
    starts[0]?.reject(declined);
    await clock.advance(100);
    expect(await leader).toBe(declined);
    expect(starts).toHaveLength(2);
    starts[1]?.resolve("done");
    await clock.advance(10);
    const answers = await Promise.all(repeats);
    expect(answers[0]).toEqual({ kind: "executed", result: "done", attempt: 1 });
    expect(answers.slice(1).every(({ kind }) => kind === "replayed")).toBe(true);
  });

  it("twice, a waiter that saw both is answered at once and does not run it a third time", async () => {
    for (const waiters of [3, 200]) {
      const { process, wire, clock } = world();
      const { starts, work } = slowWork();
      const leader = codeOf(process.run({}, work));
      await clock.settle();
      const repeats = Array.from({ length: waiters }, () =>
        process.run({}, work).catch((error: unknown) => error),
      );
      await clock.settle();
      starts[0]?.reject(declined);
      await clock.settle();
      starts[1]?.reject(declined);
      await clock.advance(10);
      const [second, ...others] = await Promise.all(repeats);
      expect([await leader, second]).toEqual([declined, declined]);
      for (const answer of others) {
        expect(answer).toMatchObject({ code: "ATTEMPT_FAILED", status: 503, retryAfterMs: 1_000 });
      }
      expect(starts).toHaveLength(2);
      expect(await wire.store.find(keyOf())).toBeUndefined();
      expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
    }
  });

  it("a waiter that came for the second attempt and saw only that one fail takes over itself", async () => {
    const { process, clock, another } = world();
    const { starts, work } = slowWork();
    // The first attempt is elsewhere, so that this process listens to the store.
    const leader = codeOf(another().run({}, work));
    await clock.settle();
    const second = codeOf(process.run({}, work));
    await clock.settle();
    starts[0]?.reject(declined);
    await clock.settle();
    expect(starts).toHaveLength(2);
    const late = [1, 2].map(() => process.run({}, work));
    await clock.settle();
    starts[1]?.reject(declined);
    await clock.settle();
    expect(await Promise.all([leader, second])).toEqual([declined, declined]);
    expect(starts).toHaveLength(3);
    starts[2]?.resolve("done");
    await clock.settle();
    expect((await Promise.all(late)).map(({ kind }) => kind)).toEqual(["executed", "replayed"]);
  });

  it("whose release is noticed through the store before it is answered is one failure, not two", async () => {
    const { process, another, wire, clock } = world();
    const { starts, work } = slowWork();
    const first = codeOf(another().run({}, work));
    await clock.settle();
    const second = codeOf(process.run({}, work));
    await clock.settle();
    // Through this one the process goes on listening to the store, as it did for the attempt that was elsewhere.
    const sawBoth = codeOf(process.run({}, work));
    await clock.settle();
    starts[0]?.reject(declined);
    await clock.settle();
    // These have seen nothing fail yet.
    const late = [1, 2].map(() => process.run({}, work));
    await clock.settle();
    const answer = gate();
    const slowly: Interference = async (request, next) => {
      const released = await next();
      await answer.interference(request, () => Promise.resolve());
      return released;
    };
    wire.on("release", firstly(1, slowly));
    starts[1]?.reject(declined);
    await clock.settle();
    expect(starts).toHaveLength(3);
    answer.open();
    await clock.settle();
    starts[2]?.resolve("done");
    await clock.settle();
    expect(await Promise.all([first, second, sawBoth])).toEqual([declined, declined, "ATTEMPT_FAILED"]);
    expect((await Promise.all(late)).map(({ kind }) => kind)).toEqual(["executed", "replayed"]);
  });

  it('all are refused at once under onReleased "refuse", here and in other processes', async () => {
    const { process, another, clock } = world({ onInFlight: { onReleased: "refuse" } });
    const { starts, work } = slowWork();
    const leader = codeOf(process.run({}, work));
    await clock.settle();
    const other = another();
    const repeats = [process, process, other, other].map((one) => codeOf(one.run({}, work)));
    await clock.settle();
    starts[0]?.reject(declined);
    await clock.advance(1);
    expect(await leader).toBe(declined);
    expect(await Promise.all(repeats)).toEqual(Array(4).fill("ATTEMPT_FAILED"));
    expect(starts).toHaveLength(1);
  });

  it('under "refuse" a result is a result all the same', async () => {
    const { process, another, clock } = world({ onInFlight: { onReleased: "refuse" } });
    const { starts, work } = slowWork();
    const leader = process.run({}, work);
    await clock.settle();
    const repeats = [another(), another()].map((one) => one.run({}, work));
    await clock.settle();
    starts[0]?.resolve("done");
    await clock.advance(1);
    await leader;
    expect((await Promise.all(repeats)).map(({ kind }) => kind)).toEqual(["replayed", "replayed"]);
  });

  it("in each process one waiter claims: of two processes one runs, the other waits on", async () => {
    const { process, another, clock } = world();
    const { starts, work } = slowWork();
    const leader = codeOf(process.run({}, work));
    await clock.settle();
    const [two, three] = [another(), another()];
    const repeats = [two, two, three, three].map((one) => one.run({}, work));
    await clock.settle();
    starts[0]?.reject(declined);
    await clock.advance(1);
    await leader;
    expect(starts).toHaveLength(2);
    starts[1]?.resolve("done");
    await clock.advance(1);
    const kinds = (await Promise.all(repeats)).map(({ kind }) => kind).sort();
    expect(kinds).toEqual(["executed", "replayed", "replayed", "replayed"]);
  });

  it("a failed attempt's own error goes only to its own caller", async () => {
    const { process, clock } = world();
    const { starts, work } = slowWork();
    const leader = codeOf(process.run({}, work));
    await clock.settle();
    const repeat = process.run({}, work);
    await clock.settle();
    starts[0]?.reject(declined);
    await clock.settle();
    starts[1]?.resolve("done");
    await clock.settle();
    expect(await leader).toBe(declined);
    expect(await repeat).toMatchObject({ kind: "executed", result: "done" });
  });

  it("into an unknown outcome, every waiter hears of that at once", async () => {
    const { process, another, clock } = world({ guarantee: "at-most-once" });
    const { starts, work } = slowWork();
    const leader = codeOf(process.run({}, work));
    await clock.settle();
    const other = another();
    const repeats = [process, process, process, other, other].map((one) => codeOf(one.run({}, work)));
    await clock.settle();
    starts[0]?.reject(declined);
    await clock.advance(1);
    expect(await leader).toBe(declined);
    expect(await Promise.all(repeats)).toEqual(Array(5).fill("OUTCOME_UNKNOWN"));
    expect(starts).toHaveLength(1);
    expect([leftovers(process), leftovers(other)]).toEqual(Array(2).fill({ here: 0, waiting: 0 }));
  });
});

describe("a claim of a waiter", () => {
  it("that fails answers the room with the store's failure, and is let go", async () => {
    const { process, wire, another, clock } = world();
    const { starts, work } = slowWork();
    const leader = codeOf(another().run({}, work));
    await clock.settle();
    const repeats = [1, 2, 3].map(() => codeOf(process.run({}, work)));
    await clock.settle();
    wire.on("claim", refused);
    starts[0]?.reject(declined);
    await clock.advance(10);
    expect(await leader).toBe(declined);
    expect(await Promise.all(repeats)).toEqual(Array(3).fill("STORE_UNAVAILABLE"));
    await clock.advance(1_000);
    expect(process.of("claim-abandoned").filter(({ state }) => state === "released").length).toBeGreaterThan(
      0,
    );
  });

  it("whose wait runs out meanwhile decides: won, it runs; lost, it is in flight", async () => {
    const { process, wire, another, clock } = world({ onInFlight: { waitMs: 1_000 } });
    const { starts, work } = slowWork();
    const leader = codeOf(another().run({}, work));
    await clock.settle();
    const repeat = process.run({}, work);
    await clock.settle();
    const line = gate();
    wire.on("claim", firstly(1, line.interference));
    await clock.advance(900);
    starts[0]?.reject(declined);
    await clock.advance(300);
    line.open();
    await clock.settle();
    expect(await leader).toBe(declined);
    starts[1]?.resolve("done");
    await clock.settle();
    expect(await repeat).toMatchObject({ kind: "executed", result: "done" });
    const tokens = wire.sent.filter(({ method }) => method === "claim");
    expect(new Set(tokens.map(({ request }) => (request as ClaimRequest).token)).size).toBe(2);
  });
});
