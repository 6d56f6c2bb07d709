import { describe, expect, it } from "vitest";
import { claimOf, resultOf, transactionOf } from "./sqlite-fixture.js";
import { INSERT, openWork } from "./sqlite-work.js";

describe("while a transaction is open", () => {
  it("the next one waits in line, in order", async () => {
    const { begin, store } = await openWork();
    const order: string[] = [];
    const work = async (name: string) => {
      const claim = claimOf(name);
      await store.claim(claim);
      const session = store.begin?.(transactionOf(claim));
      await session?.handle.run(INSERT, [name.charCodeAt(0)]);
      order.push(`${name} in`);
      await new Promise((resolve) => setTimeout(resolve, 20));
      await session?.commit(resultOf(name), "everything");
      order.push(`${name} out`);
    };
    await Promise.all(["x", "y", "z"].map(work));
    const places = order.map((entry) => entry.split(" ")[1]);
    expect(places).toEqual(["in", "out", "in", "out", "in", "out"]);
    await begin().rollback();
  });

  it("claims and completions of this process wait without blocking, and go through between two of them", async () => {
    const { begin, store } = await openWork({ busyWaitMs: 10_000 });
    const [first, second] = [begin(60_000), begin(60_000)];
    await first.handle.run(INSERT, [1]);
    const inLine = second.handle.run(INSERT, [2]);
    let turns = 0;
    const ticking = setInterval(() => {
      turns += 1;
    }, 1);
    const claim = store.claim(claimOf("other"));
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(turns).toBeGreaterThan(5);
    clearInterval(ticking);
    await first.rollback();
    // The second transaction holds the file now, or soon; the claim got in before it.
    expect(await claim).toMatchObject({ kind: "claimed" });
    await inLine;
    expect(await second.commit(resultOf("paid"), "everything")).toEqual({ kind: "committed" });
  });

  it("waits for its turn no longer than busyWaitMs", async () => {
    const { begin } = await openWork({ busyWaitMs: 50 });
    const [first, second] = [begin(60_000), begin()];
    await first.handle.run(INSERT, [1]);
    await expect(second.handle.run(INSERT, [2])).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(await second.commit(resultOf("x"), "everything")).toMatchObject({ kind: "refused" });
    expect(await first.commit(resultOf("paid"), "everything")).toEqual({ kind: "committed" });
  });
});
