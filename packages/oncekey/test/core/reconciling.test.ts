import { describe, expect, it } from "vitest";
import type { Reconcile, Reconciliation, UnknownRecord } from "../../src/core/policy.js";
import {
  answerSwallowed,
  codeOf,
  declined,
  deferred,
  firstly,
  gate,
  keyOf,
  leftovers,
  silent,
  slowWork,
  type World,
  world,
} from "./processes.js";

const LEASE_MS = 30_000;
const throwing = () => {
  throw declined;
};

/** A key whose outcome is unknown, because its work threw under at-most-once. */
async function unknown(onLapsed: Reconcile, policy = {}): Promise<World> {
  const place = world({ guarantee: "at-most-once", onLapsed, ...policy });
  expect(await codeOf(place.process.run({}, throwing))).toBe(declined);
  return place;
}

describe("reconciling an unknown outcome", () => {
  it("done with a result: repeats get it, here and elsewhere, and nothing runs", async () => {
    const asked: UnknownRecord[] = [];
    const { process, another } = await unknown((record) => {
      asked.push(record);
      return { kind: "done", result: { receipt: 7 } };
    });
    expect(await process.run({}, () => "ran")).toMatchObject({ kind: "replayed", result: { receipt: 7 } });
    expect(await another().run({}, () => "ran")).toMatchObject({ kind: "replayed", result: { receipt: 7 } });
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({
      operation: "op",
      attempt: 1,
      state: "unknown",
      guarantee: "at-most-once",
    });
    expect(process.of("reconciled")).toMatchObject([{ verdict: "done" }]);
  });

  it("asks with the same key that the work gave to the other service", async () => {
    const keys: string[] = [];
    const place = world({
      guarantee: "at-most-once",
      onLapsed: (record) => {
        keys.push(record.downstreamKey("stripe"));
        return { kind: "done" };
      },
    });
    await codeOf(
      place.process.run({}, (work) => {
        keys.push(work.downstreamKey("stripe"));
        throw declined;
      }),
    );
    await codeOf(place.process.run({}, () => "ran"));
    expect(keys[0]).toBe(keys[1]);
  });

  it("done without a result leaves a tombstone", async () => {
    const { process } = await unknown(() => ({ kind: "done" }));
    expect(await codeOf(process.run({}, () => "ran"))).toBe("RESULT_NOT_RETAINED");
  });

  it("not done: whoever asked runs the work, as the next attempt", async () => {
    const { process, wire } = await unknown(() => ({ kind: "not-done" }));
    expect(await process.run({}, ({ attempt }) => `attempt ${attempt}`)).toEqual({
      kind: "executed",
      result: "attempt 2",
      attempt: 2,
    });
    expect((await wire.store.find(keyOf()))?.state).toBe("completed");
  });

  it("not done, with all attempts used: the key is refused", async () => {
    const { process } = await unknown(() => ({ kind: "not-done" }), { maxAttempts: 1 });
    expect(await codeOf(process.run({}, () => "ran"))).toBe("ATTEMPTS_EXHAUSTED");
  });

  const silences: [string, Reconcile][] = [
    ["unknown", () => ({ kind: "unknown" })],
    ["a throw", throwing],
    ["nonsense", () => "perhaps" as never],
    ["nothing", () => undefined as never],
  ];
  for (const [what, reconcile] of silences) {
    it(`${what} leaves it unknown, and the next repeat asks again`, async () => {
      let asked = 0;
      const { process } = await unknown((record) => {
        asked += 1;
        return reconcile(record);
      });
      for (const times of [1, 2]) {
        expect(await codeOf(process.run({}, () => "ran"))).toBe("OUTCOME_UNKNOWN");
        expect(asked).toBe(times);
      }
      expect(process.of("reconciled").map(({ verdict }) => verdict)).toEqual(["unknown", "unknown"]);
    });
  }

  it("is cut off after reconcileTimeoutMs, and what it says then is not heard", async () => {
    const verdict = deferred<Reconciliation>();
    const { process, wire, clock } = await unknown(() => verdict.promise, { reconcileTimeoutMs: 3_000 });
    const repeat = codeOf(process.run({}, () => "ran"));
    await clock.advance(3_000);
    expect(await repeat).toBe("OUTCOME_UNKNOWN");
    verdict.resolve({ kind: "done" });
    await clock.settle();
    expect((await wire.store.find(keyOf()))?.state).toBe("unknown");
  });

  it("keeps its claim while it takes longer than the lease; others are in flight, and none asks beside it", async () => {
    let asked = 0;
    const verdict = deferred<Reconciliation>();
    const policy = { reconcileTimeoutMs: 5 * LEASE_MS, onInFlight: { waitMs: 4 * LEASE_MS } };
    const { process, another, clock } = await unknown(() => {
      asked += 1;
      return verdict.promise;
    }, policy);
    const two = another();
    const repeats = [process, process, two, two].map((one) => one.run({}, () => "ran"));
    const refused = codeOf(two.run({ onInFlight: "reject" }, () => "ran"));
    await clock.advance(3 * LEASE_MS);
    expect(await refused).toBe("IN_FLIGHT");
    expect(asked).toBe(1);
    verdict.resolve({ kind: "done", result: "found" });
    await clock.advance(1_000);
    expect((await Promise.all(repeats)).map(({ result }) => result)).toEqual(Array(4).fill("found"));
    expect([leftovers(process), leftovers(two)]).toEqual(Array(2).fill({ here: 0, waiting: 0 }));
  });

  it("is over with its verdict: a renewal that was under way does not bring the reconciler back", async () => {
    const verdict = deferred<Reconciliation>();
    const { process, wire, clock } = await unknown(() => verdict.promise, { reconcileTimeoutMs: LEASE_MS });
    const repeat = codeOf(process.run({}, () => "ran"));
    await clock.settle();
    const renewal = gate();
    wire.on("reconcile", renewal.interference);
    await clock.advance(LEASE_MS / 3);
    expect(renewal.waiting()).toBe(1);
    verdict.resolve({ kind: "unknown" });
    await clock.settle();
    renewal.open();
    await clock.settle();
    expect(await repeat).toBe("OUTCOME_UNKNOWN");
    expect(await wire.store.find(keyOf())).toMatchObject({ state: "unknown", reconciling: false });
  });

  it("of two processes both told not-done only one starts the work", async () => {
    const { process, another, clock } = await unknown(() => ({ kind: "not-done" }));
    const { starts, work } = slowWork();
    const two = another();
    const repeats = [process, two, process, two].map((one) => one.run({}, work));
    await clock.advance(10);
    expect(starts).toHaveLength(1);
    starts[0]?.resolve("done");
    await clock.advance(600);
    const kinds = (await Promise.all(repeats)).map(({ kind }) => kind).sort();
    expect(kinds).toEqual(["executed", "replayed", "replayed", "replayed"]);
  });

  it("that nobody can do leaves every waiter with OUTCOME_UNKNOWN at once, having asked once", async () => {
    let asked = 0;
    const { process, clock } = await unknown(() => {
      asked += 1;
      return { kind: "unknown" };
    });
    const repeats = [1, 2, 3].map(() => codeOf(process.run({}, () => "ran")));
    await clock.advance(10);
    expect(await Promise.all(repeats)).toEqual(Array(3).fill("OUTCOME_UNKNOWN"));
    expect(asked).toBe(1);
  });

  it("yields to the work's own completion, which lands while it asks", async () => {
    const place = world({ guarantee: "at-most-once", onLapsed: () => verdict.promise });
    const { process, another, wire, clock } = place;
    const verdict = deferred<Reconciliation>();
    const { starts, work } = slowWork();
    const slow = another().run({}, work);
    await clock.settle();
    wire.on("extend", silent);
    await clock.advance(2 * LEASE_MS + 1);
    wire.on("extend", undefined);
    const repeat = process.run({ onInFlight: { waitMs: 2 * LEASE_MS } }, () => "ran");
    await clock.settle();
    expect((await wire.store.find(keyOf()))?.reconciling).toBe(true);
    starts[0]?.resolve("the truth");
    await clock.settle();
    expect(await slow).toMatchObject({ kind: "executed", result: "the truth" });
    verdict.resolve({ kind: "not-done" });
    await clock.advance(10);
    expect(await repeat).toMatchObject({ kind: "replayed", result: "the truth" });
    expect(starts).toHaveLength(1);
  });

  it("is first asked one lease after the lapse: whoever held it may only be slow", async () => {
    let asked = 0;
    const place = world({
      guarantee: "at-most-once",
      onLapsed: () => {
        asked += 1;
        return { kind: "done", result: "found" };
      },
    });
    const { process, another, wire, clock } = place;
    wire.on("extend", silent);
    void another().run({}, () => new Promise(() => undefined));
    await clock.advance(1.5 * LEASE_MS);
    const early = codeOf(process.run({}, () => "ran"));
    await clock.advance(5_000);
    expect([await early, asked]).toEqual(["IN_FLIGHT", 0]);
    await clock.advance(0.5 * LEASE_MS);
    const repeat = process.run({}, () => "ran");
    await clock.advance(10);
    expect(await repeat).toMatchObject({ kind: "replayed", result: "found" });
    expect(asked).toBe(1);
  });

  it("whose restart lands but is never answered leaves no claim that nobody owns", async () => {
    const { process, wire, clock } = await unknown(() => ({ kind: "not-done" }));
    wire.on("resolve", firstly(1, answerSwallowed));
    let ran = 0;
    const repeat = codeOf(process.run({}, () => ++ran));
    await clock.advance(2_000);
    expect(await repeat).toBe("STORE_UNAVAILABLE");
    await clock.advance(1_000);
    expect((await wire.store.find(keyOf()))?.lapsed).toBe(true);
    await clock.advance(LEASE_MS);
    const again = process.run({}, () => ++ran);
    await clock.advance(10);
    expect(await again).toMatchObject({ kind: "executed", result: 1 });
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
  });

  it("is also possible under at-least-once, for what lapsed; what threw just runs again", async () => {
    const place = world({ onLapsed: () => ({ kind: "done", result: "found" }) });
    const { process, another, wire, clock } = place;
    await codeOf(process.run({ key: "threw" }, throwing));
    expect(await process.run({ key: "threw" }, () => "again")).toMatchObject({ kind: "executed" });
    wire.on("extend", silent);
    void another().run({}, () => new Promise(() => undefined));
    await clock.advance(2 * LEASE_MS + 1);
    wire.on("extend", undefined);
    const repeat = process.run({}, () => "ran");
    await clock.advance(10);
    expect(await repeat).toMatchObject({ kind: "replayed", result: "found" });
  });
});
