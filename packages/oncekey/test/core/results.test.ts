import { describe, expect, it } from "vitest";
import { codeOf, declined, slowWork, world } from "./processes.js";

const throwing = (error: unknown) => () => {
  throw error;
};

describe("a result", () => {
  const results = [undefined, null, 0, "", false, Number.NaN, -0, 10n, [], {}, "text", { deep: [{ a: 1 }] }];
  for (const result of results) {
    it(`${typeof result} ${String(result)} is a result, not "no record": its repeat replays`, async () => {
      const { process } = world();
      let ran = 0;
      const work = () => {
        ran += 1;
        return result;
      };
      expect(await process.run({}, work)).toEqual({ kind: "executed", result, attempt: 1 });
      expect(await process.run({}, work)).toEqual({ kind: "replayed", result, waitedMs: 0 });
      expect(ran).toBe(1);
    });
  }

  it("of a function that returns nothing is replayed as nothing", async () => {
    const { process } = world();
    await process.run({}, () => undefined);
    expect(await process.run({}, () => "again")).toMatchObject({ kind: "replayed", result: undefined });
  });

  const foreign = { ["then" as string]: (_: unknown, no: (error: Error) => void) => no(declined) };
  const slips: [string, () => unknown][] = [
    ["async", () => Promise.reject(declined)],
    ["a promise of another library", () => foreign],
  ];
  it.each(slips)(
    "is kept by the default rule where keep is %s, which only JavaScript lets through",
    async (_, slip) => {
      const { process } = world();
      const keep = slip as never;
      expect(await codeOf(process.run({ keep }, throwing(new Error("first"))))).toMatchObject({
        message: "first",
      });
      expect(await process.run({ keep }, () => "done")).toMatchObject({ kind: "executed", result: "done" });
      expect(await process.run({ keep }, () => "again")).toMatchObject({ kind: "replayed", result: "done" });
    },
  );

  const circular: { self?: unknown } = {};
  circular.self = circular;
  const unkept: [string, unknown, string][] = [
    ["an instance of a class", new (class Money {})(), "holds an instance of Money"],
    ["a function", () => 1, "holds a function"],
    ["a stream", new ReadableStream(), "holds an instance of ReadableStream"],
    ["too large", "x".repeat(2_000), "is larger than allowed"],
  ];
  for (const [what, result, reason] of unkept) {
    it(`that is ${what} goes whole to the first caller; repeats learn that it is done and do not run again`, async () => {
      const { process } = world({ maxResultBytes: 1_000 });
      expect((await process.run({}, () => result)).result).toBe(result);
      const error = await process.run({}, () => "again").catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "RESULT_NOT_RETAINED", completed: true, status: 409 });
      expect(process.of("result-not-kept")).toMatchObject([{ reason }]);
      expect(process.of("completed")).toMatchObject([{ tombstone: true }]);
      const rebuilt = await process.run({ onTombstone: () => "rebuilt" }, () => "again");
      expect(rebuilt).toMatchObject({ kind: "replayed", result: "rebuilt" });
    });
  }

  it("that holds itself is given back holding itself", async () => {
    const { process } = world();
    expect((await process.run({}, () => circular)).result).toBe(circular);
    const { result } = await process.run({}, () => circular);
    expect(result.self).toBe(result);
  });

  it("goes through the caller's codec both ways, and one that fails costs the body, not the success", async () => {
    const { process } = world();
    class Money {
      readonly cents: number;
      constructor(cents: number) {
        this.cents = cents;
      }
    }
    const codec = {
      encode: ({ cents }: Money) => cents,
      decode: (cents: unknown) => new Money(Number(cents)),
    };
    await process.run({ result: codec }, () => new Money(5));
    const { result } = await process.run({ result: codec }, () => new Money(6));
    expect([result instanceof Money, result.cents]).toEqual([true, 5]);
    const broken = { ...codec, encode: throwing(new Error("no")) };
    expect(await process.run({ key: 2, result: broken }, () => new Money(7))).toMatchObject({
      kind: "executed",
      result: new Money(7),
    });
    expect(await codeOf(process.run({ key: 2, result: broken }, () => new Money(8)))).toBe(
      "RESULT_NOT_RETAINED",
    );
  });

  it("does not depend on what the work does to its input afterwards", async () => {
    const { process } = world();
    const order = { items: ["a"] };
    await process.run({ input: order }, () => {
      order.items.push("b");
      return "ordered";
    });
    const honest = await process.run({ input: { items: ["a"] } }, () => "again");
    expect(honest).toMatchObject({ kind: "replayed", result: "ordered" });
  });

  it("lives as long as its retention, counted from its completion, and no longer", async () => {
    const { process, clock } = world({ retentionMs: 60_000 });
    const { starts, work } = slowWork();
    const first = process.run({}, work);
    await clock.advance(20_000);
    starts[0]?.resolve("done");
    await first;
    await clock.advance(59_999);
    expect(await process.run({}, () => "again")).toMatchObject({ kind: "replayed" });
    await clock.advance(1);
    expect(await process.run({}, () => "again")).toMatchObject({ kind: "executed", attempt: 1 });
  });
});
