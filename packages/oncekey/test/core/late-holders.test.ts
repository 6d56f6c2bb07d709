/**
 * A holder that outlives its lease, and whatever it still does, beside whoever took over.
 */
import { describe, expect, it } from "vitest";
import { asserted, codeOf, declined, keyOf, silent, slowWork, started, wire, world } from "./processes.js";

const LEASE_MS = 30_000;

/** One process whose renewals get lost, and another that has taken its key over. */
async function takenOver() {
  const place = world({ onInFlight: { waitMs: 2 * LEASE_MS } });
  const cutOff = wire(place.wire.store);
  cutOff.on("extend", silent);
  const former = await started(place.another({}, cutOff), place);
  await place.clock.advance(LEASE_MS);
  const { starts, work } = slowWork();
  const present = codeOf(place.process.run({}, work));
  await place.clock.settle();
  expect(starts).toHaveLength(1);
  return { place, cutOff, former, present, presentEnds: starts[0], work, starts };
}

describe("a holder that outlives its lease", () => {
  it("and throws frees nothing: nobody runs beside the one that took over", async () => {
    const { place, former, present, presentEnds, work, starts } = await takenOver();
    former.end.reject(declined);
    await place.clock.settle();
    expect(await codeOf(former.call)).toBe(declined);
    expect((await place.wire.store.find(keyOf()))?.lapsed).toBe(false);
    const third = codeOf(place.another().run({}, work));
    await place.clock.advance(LEASE_MS);
    expect(starts).toHaveLength(1);
    presentEnds?.resolve("done");
    await place.clock.settle();
    expect(await present).toMatchObject({ kind: "executed", result: "done", attempt: 2 });
    expect(await third).toMatchObject({ kind: "replayed", result: "done" });
  });

  it("and completes while the other runs changes nothing, and is told so", async () => {
    const { place, cutOff, former, present, presentEnds } = await takenOver();
    expect(asserted(former.work)).toBe("LEASE_LOST");
    cutOff.on("extend", undefined);
    expect(await codeOf(former.work.confirm())).toBe("LEASE_LOST");
    expect(former.work.signal.aborted).toBe(true);
    former.end.resolve("too late");
    await place.clock.settle();
    presentEnds?.resolve("done");
    await place.clock.settle();
    expect(await former.call).toMatchObject({ kind: "executed", result: "too late" });
    expect(await present).toMatchObject({ kind: "executed", result: "done" });
    expect(await place.process.run({}, () => "again")).toMatchObject({ kind: "replayed", result: "done" });
  });

  it("and completes after the other has gets the other's result", async () => {
    const { place, former, present, presentEnds } = await takenOver();
    presentEnds?.resolve("done");
    await present;
    former.end.resolve("too late");
    await place.clock.settle();
    expect(await former.call).toMatchObject({ kind: "replayed", result: "done" });
  });
});
