import { describe, expect, it } from "vitest";
import { createTurns } from "./turns.js";

describe("turns", () => {
  it("are taken one at a time, in the order of asking", async () => {
    const turns = createTurns();
    const order: number[] = [];
    const take = async (name: number) => {
      const leave = await turns.enter(1_000);
      order.push(name);
      await Promise.resolve();
      leave();
      leave();
    };
    await Promise.all([1, 2, 3].map(take));
    expect(order).toEqual([1, 2, 3]);
  });

  it("are waited for no longer than allowed; whoever gave up is not called", async () => {
    const turns = createTurns();
    const leave = await turns.enter(1_000);
    await expect(turns.enter(5)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    const patient = turns.enter(1_000);
    leave();
    (await patient)();
    (await turns.enter(5))();
  });

  it("have a line of bounded length", async () => {
    const turns = createTurns();
    const leave = await turns.enter(1_000);
    const line = Array.from({ length: 1_000 }, () => turns.enter(10_000).then((leaveTurn) => leaveTurn()));
    await expect(turns.enter(10_000)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    leave();
    await Promise.all(line);
  });
});
