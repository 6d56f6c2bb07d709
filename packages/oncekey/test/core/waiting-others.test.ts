import { describe, expect, it } from "vitest";
import { codeOf, declined, deferred, keyOf, slowWork, world } from "./processes.js";

describe("other requests under a key that runs", () => {
  it("are a mismatch while it is in flight, and change nothing", async () => {
    const { process, another, wire, clock } = world();
    const { starts, work } = slowWork();
    const leader = process.run({}, work);
    await clock.settle();
    const before = await wire.store.find(keyOf());
    for (const one of [process, another()]) {
      const other = codeOf(one.run({ input: 2 }, work));
      await clock.settle();
      expect(await other).toBe("KEY_REUSED");
    }
    expect(await wire.store.find(keyOf())).toEqual(before);
    starts[0]?.resolve("done");
    expect(await leader).toMatchObject({ kind: "executed" });
    expect(process.of("mismatch")).toHaveLength(1);
  });

  it("that were fingerprinted by another rule are no mismatch and no second run: they wait and replay", async () => {
    const { process, another, clock } = world();
    const { starts, work } = slowWork();
    const leader = process.run({}, work);
    await clock.settle();
    const two = another();
    const repeats = [process, two].map((one) => one.run({ fingerprint: "off" }, work));
    await clock.settle();
    starts[0]?.resolve("done");
    await clock.advance(1);
    await leader;
    expect((await Promise.all(repeats)).map(({ kind }) => kind)).toEqual(["replayed", "replayed"]);
    expect(process.of("fingerprint-skipped").length).toBeGreaterThan(0);
    expect(await process.run({ fingerprint: "off" }, work)).toMatchObject({ kind: "replayed" });
    expect(starts).toHaveLength(1);
  });

  it("that wait here are judged by what is on record when a third request got the key", async () => {
    const { process, another, clock } = world();
    const { starts, work } = slowWork();
    const leader = codeOf(another().run({}, work));
    await clock.settle();
    const waiter = codeOf(process.run({ onInFlight: { waitMs: 20_000 } }, work));
    await clock.settle();
    starts[0]?.reject(declined);
    await clock.settle();
    await leader;
    expect(starts).toHaveLength(2);
    starts[1]?.resolve("done");
    expect(await waiter).toMatchObject({ kind: "executed" });
    expect(await codeOf(another().run({ input: 2 }, work))).toBe("KEY_REUSED");
  });
});

describe("a key used inside its own work", () => {
  it("is refused at once instead of waiting for itself", async () => {
    const { process, clock } = world();
    const call = codeOf(process.run({}, () => process.run({}, () => "inner")));
    await clock.settle();
    expect(await call).toBe("KEY_REENTERED");
  });

  it("is found through other keys in between, and not where only the name of the work is the same", async () => {
    const { process, clock } = world();
    const nested = process.run({ key: "a" }, () =>
      process.run({ key: "b" }, async () => codeOf(process.run({ key: "a" }, () => "inner"))),
    );
    await clock.settle();
    expect(await nested).toMatchObject({ result: { result: "KEY_REENTERED" } });
    const fine = process.run({ key: "c" }, () =>
      process.run({ key: "c", operation: "other" }, () => "inner"),
    );
    await clock.settle();
    expect(await fine).toMatchObject({ result: { result: "inner" } });
  });

  it("may be used by what the work has left behind, once it has ended", async () => {
    const { process, clock } = world();
    const later = deferred<Promise<unknown>>();
    const call = process.run({}, () => {
      void Promise.resolve().then(async () => {
        await new Promise<void>((resolve) => clock.setTimer(resolve, 100));
        later.resolve(codeOf(process.run({}, () => "again")));
      });
      return "done";
    });
    await clock.settle();
    await call;
    await clock.advance(200);
    expect(await await later.promise).toMatchObject({ kind: "replayed", result: "done" });
  });
});

describe("two operations", () => {
  it("nested, and in parallel, keep their own records", async () => {
    const { process, clock } = world();
    const order = (id: number) =>
      process.run({ operation: "order", key: id, input: id }, async () => {
        const paid = await process.run({ operation: "pay", key: id, input: id }, () => `paid ${id}`);
        return `ordered ${id}, ${paid.result}`;
      });
    const calls = [1, 2, 1, 2].map(order);
    await clock.settle();
    expect((await Promise.all(calls)).map(({ result }) => result)).toEqual([
      "ordered 1, paid 1",
      "ordered 2, paid 2",
      "ordered 1, paid 1",
      "ordered 2, paid 2",
    ]);
  });

  it("with one key in two scopes both run, and nobody sees the other's answer on any path", async () => {
    const { process, another, clock } = world();
    const { starts, work } = slowWork();
    const [a, b] = ["alice", "bob"].map((scope) => process.run({ scope }, work));
    await clock.settle();
    const joined = ["alice", "bob"].map((scope) => process.run({ scope }, work));
    const elsewhere = ["alice", "bob"].map((scope) => another().run({ scope }, work));
    await clock.settle();
    expect(starts).toHaveLength(2);
    starts[0]?.resolve("for alice");
    starts[1]?.resolve("for bob");
    await clock.advance(1);
    const answers = await Promise.all([a, b, ...joined, ...elsewhere] as Promise<{ result: string }>[]);
    expect(answers.map(({ result }) => result)).toEqual([
      "for alice",
      "for bob",
      "for alice",
      "for bob",
      "for alice",
      "for bob",
    ]);
  });
});
