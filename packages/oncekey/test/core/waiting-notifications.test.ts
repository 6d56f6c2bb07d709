import { describe, expect, it } from "vitest";
import { OncekeyError } from "../../src/core/errors.js";
import type { Store } from "../../src/core/store.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { codeOf, declined, keyOf, leftovers, slowWork, startProcess, wire, world } from "./processes.js";

describe("notifications", () => {
  it("that come between the answer and the registration are not missed", async () => {
    const { process, wire, another, clock } = world();
    const { starts, work } = slowWork();
    const leader = another().run({}, work);
    await clock.settle();
    // The repeat hears "in flight" only after the leader has completed and everybody was notified.
    wire.on("claim", async (_, next) => {
      const answer = await next();
      wire.on("claim", undefined);
      starts[0]?.resolve("done");
      await leader;
      return answer;
    });
    const repeat = process.run({}, work);
    await clock.advance(1);
    expect(await repeat).toMatchObject({ kind: "replayed", result: "done" });
  });

  it("that are lost are made up for by the fallback: one read for all keys per tick", async () => {
    const { wire, another, clock } = world();
    const deaf: Store = { ...wire.store, watch: () => ({ close: () => undefined }) };
    const process = startProcess({ store: deaf, clock });
    const { starts, work } = slowWork();
    const leaders = ["a", "b"].map((key) => another().run({ key }, work));
    await clock.settle();
    const repeats = ["a", "b"].map((key) => process.run({ key }, work));
    await clock.advance(1_200);
    expect(wire.count("status")).toBe(2);
    for (const start of starts) start.resolve("done");
    await clock.advance(500);
    await Promise.all(leaders);
    expect((await Promise.all(repeats)).map(({ kind }) => kind)).toEqual(["replayed", "replayed"]);
    expect(wire.count("status")).toBe(3);
    // Nobody waits any more, so nobody reads.
    await clock.advance(5_000);
    expect(wire.count("status")).toBe(3);
  });

  it("that are lost are made up for also while another's record cannot be read", async () => {
    const { wire, another, clock } = world();
    const deaf: Store = { ...wire.store, watch: () => ({ close: () => undefined }) };
    const process = startProcess({ store: deaf, clock });
    const { starts, work } = slowWork();
    const leaders = ["damaged", "sound"].map((key) => codeOf(another().run({ key }, work)));
    await clock.settle();
    const repeats = ["damaged", "sound"].map((key) => codeOf(process.run({ key }, work)));
    await clock.settle();
    const damaged = keyOf("damaged");
    wire.on("claim", async (request, next) => {
      if ((request as { readonly key: unknown }).key === damaged)
        throw new OncekeyError("RECORD_UNREADABLE", "damaged");
      return next();
    });
    wire.on("status", async (keys, next) => {
      const states = (await next()) as unknown[];
      return states.map((state, index) =>
        (keys as unknown[])[index] === damaged ? { state: "lapsed", holder: undefined } : state,
      );
    });
    starts[1]?.resolve("done");
    await clock.advance(1_100);
    expect(await Promise.all(repeats)).toMatchObject([
      "RECORD_UNREADABLE",
      { kind: "replayed", result: "done" },
    ]);
    starts[0]?.resolve("done");
    await Promise.all(leaders);
  });

  it("are not needed at all: a store without them is read from time to time", async () => {
    const clock = manualClock();
    const { watch: _, ...silentStore } = memoryStore({ clock, sweepIntervalMs: 0 });
    const line = wire(silentStore);
    const [one, two] = [1, 2].map(() => startProcess({ store: line.store, clock })) as [never, never];
    const { starts, work } = slowWork();
    const leader = codeOf(startProcess({ store: line.store, clock }).run({}, work));
    await clock.settle();
    const repeats = [one, one, two].map((process: ReturnType<typeof startProcess>) => process.run({}, work));
    await clock.advance(600);
    starts[0]?.reject(declined);
    await clock.advance(500);
    expect(await leader).toBe(declined);
    expect(starts).toHaveLength(2);
    starts[1]?.resolve("done");
    await clock.advance(500);
    expect((await Promise.all(repeats)).map(({ kind }) => kind).sort()).toEqual([
      "executed",
      "replayed",
      "replayed",
    ]);
  });

  it("of a holder that died never come: its lapse is seen, and one waiter takes over", async () => {
    const { process, wire, clock } = world({ leaseMs: 4_000, onInFlight: { waitMs: 10_000 } });
    const dead = startProcess({
      store: { ...wire.store, extend: () => new Promise(() => undefined) },
      clock,
      policy: { leaseMs: 4_000 },
    });
    void dead.run({}, () => new Promise(() => undefined));
    await clock.settle();
    const repeats = [1, 2].map(() => process.run({}, () => "done"));
    await clock.advance(4_600);
    const kinds = (await Promise.all(repeats)).map(({ kind }) => kind).sort();
    expect(kinds).toEqual(["executed", "replayed"]);
    expect(process.of("takeover")).toMatchObject([{ attempt: 2 }]);
  });

  it("may come too often: the store is asked once at a time", async () => {
    const { process, wire, another, clock } = world();
    const wakeUps: (() => void)[] = [];
    const noisy: Store = {
      ...wire.store,
      watch: (_, wake) => {
        wakeUps.push(wake);
        return { close: () => undefined };
      },
    };
    void process;
    const { starts, work } = slowWork();
    const leader = another().run({}, work);
    await clock.settle();
    const waiting = startProcess({ store: noisy, clock });
    const repeat = waiting.run({}, work);
    await clock.settle();
    const before = wire.count("claim");
    for (let n = 0; n < 100; n++) wakeUps[0]?.();
    await clock.settle();
    expect(wire.count("claim") - before).toBe(2);
    starts[0]?.resolve("done");
    await clock.advance(500);
    await leader;
    expect(await repeat).toMatchObject({ kind: "replayed" });
    wakeUps[0]?.();
    await clock.settle();
    expect(leftovers(waiting)).toEqual({ here: 0, waiting: 0 });
  });
});
