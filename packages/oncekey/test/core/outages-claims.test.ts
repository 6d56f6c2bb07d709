import { describe, expect, it } from "vitest";
import { OncekeyError } from "../../src/core/errors.js";
import {
  answerLost,
  answerSwallowed,
  codeOf,
  deferred,
  firstly,
  gate,
  keyOf,
  leftovers,
  refused,
  silent,
  world,
} from "./processes.js";

const LEASE_MS = 30_000;

describe("a claim that gets no answer", () => {
  it("is asked twice with one token within storeTimeoutMs, then refused with a time to come back", async () => {
    const { process, wire, clock } = world();
    wire.on("claim", silent);
    let ran = 0;
    const call = process.run({}, () => ran++);
    const ended = call.catch((error: unknown) => error);
    await clock.advance(1_999);
    expect(process.of("finished")).toEqual([]);
    await clock.advance(1);
    expect(await ended).toMatchObject({ code: "STORE_UNAVAILABLE", status: 503, retryAfterMs: 1_000 });
    const tokens = wire.sent.filter(({ method }) => method === "claim").map(({ request }) => request);
    expect(tokens).toHaveLength(2);
    expect(new Set(tokens.map((request) => (request as { token: string }).token)).size).toBe(1);
    expect(ran).toBe(0);
    expect(process.of("finished")).toMatchObject([{ outcome: "store_failure" }]);
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
  });

  it("runs once when only the answer was lost: asked again, it recognises its own token", async () => {
    const { process, wire, clock } = world();
    wire.on("claim", firstly(1, answerLost));
    let ran = 0;
    const call = process.run({}, () => ++ran);
    await clock.settle();
    expect(await call).toEqual({ kind: "executed", result: 1, attempt: 1 });
    expect(wire.count("claim")).toBe(2);
    expect(ran).toBe(1);
  });

  it("refuses at the same time whoever waits here for that claim", async () => {
    const { process, wire, clock } = world({ onInFlight: { waitMs: 20_000 } });
    wire.on("claim", silent);
    const calls = [1, 2, 3].map(() => codeOf(process.run({}, () => "ran")));
    await clock.advance(2_000);
    expect(await Promise.all(calls)).toEqual(Array(3).fill("STORE_UNAVAILABLE"));
    expect(wire.count("claim")).toBe(2);
  });

  it("leaves no claim that nobody owns when 100 callers were refused and the store comes back", async () => {
    const { process, wire, clock } = world();
    const stopped = gate();
    wire.all(stopped.interference);
    const calls = Array.from({ length: 100 }, (_, n) => codeOf(process.run({ key: n }, () => "ran")));
    await clock.advance(2_000);
    expect(new Set(await Promise.all(calls))).toEqual(new Set(["STORE_UNAVAILABLE"]));
    // Everything that was sent meanwhile lands now: all claims, all releases so far.
    wire.all(undefined);
    stopped.open();
    await clock.advance(5_000);
    for (let n = 0; n < 100; n++) expect(await wire.store.find(keyOf(n))).toBeUndefined();
    expect(process.of("claim-abandoned").filter(({ state }) => state === "released")).toHaveLength(100);
    const again = await Promise.all([0, 50, 99].map((n) => process.run({ key: n }, () => "ran")));
    expect(again).toEqual(Array(3).fill({ kind: "executed", result: "ran", attempt: 1 }));
  });

  it("is let go also when the claim lands after a release of it was answered", async () => {
    const { process, wire, clock } = world();
    const stopped = gate();
    wire.on("claim", stopped.interference);
    const call = codeOf(process.run({}, () => "ran"));
    await clock.advance(2_000);
    expect(await call).toBe("STORE_UNAVAILABLE");
    await clock.advance(4_000);
    expect(wire.count("release")).toBeGreaterThan(1);
    stopped.open();
    await clock.settle();
    expect((await wire.store.find(keyOf()))?.state).toBe("claimed");
    await clock.advance(5_000);
    expect(await wire.store.find(keyOf())).toBeUndefined();
    const releases = wire.count("release");
    await clock.advance(LEASE_MS);
    expect(wire.count("release")).toBe(releases);
  });

  it("is let go also if every call had been rejected: a rejected call may have landed", async () => {
    const { process, wire, clock } = world();
    wire.on("claim", answerLost);
    const call = codeOf(process.run({}, () => "ran"));
    await clock.settle();
    expect(await call).toBe("STORE_UNAVAILABLE");
    expect((await wire.store.find(keyOf()))?.state).toBe("claimed");
    await clock.advance(200);
    expect(await wire.store.find(keyOf())).toBeUndefined();
  });

  it("is given up after one lease if the store stays away", async () => {
    const { process, wire, clock } = world();
    wire.all(refused);
    const call = codeOf(process.run({}, () => "ran"));
    await clock.advance(LEASE_MS + 10_000);
    expect(await call).toBe("STORE_UNAVAILABLE");
    expect(process.of("claim-abandoned").map(({ state }) => state)).toEqual(["releasing", "given-up"]);
    const releases = wire.count("release");
    await clock.advance(LEASE_MS);
    expect(wire.count("release")).toBe(releases);
  });

  it("that lands only after another answer was given, and its caller has gone, stays nobody's", async () => {
    const { process, wire, clock, another } = world({ onInFlight: { waitMs: 1_500 } });
    const work = deferred();
    const leader = another().run({}, () => work.promise);
    const error = leader.catch((thrown: unknown) => thrown);
    await clock.settle();
    const stopped = gate();
    wire.on("claim", firstly(1, stopped.interference));
    const repeat = codeOf(process.run({}, () => "ran"));
    await clock.advance(3_000);
    expect(await repeat).toBe("IN_FLIGHT");
    work.reject(new Error("declined"));
    expect(await error).toEqual(new Error("declined"));
    stopped.open();
    await clock.settle();
    await clock.advance(5_000);
    expect(await wire.store.find(keyOf())).toBeUndefined();
  });

  it("that lands only after its own work has failed and was released stays nobody's", async () => {
    const { process, wire, clock } = world();
    const stopped = gate();
    wire.on("claim", firstly(1, stopped.interference));
    const call = codeOf(
      process.run({}, () => {
        throw new Error("declined");
      }),
    );
    await clock.advance(1_000);
    expect(await call).toEqual(new Error("declined"));
    stopped.open();
    await clock.advance(5_000);
    expect(await wire.store.find(keyOf())).toBeUndefined();
  });
});

describe('onStoreDown: "run"', () => {
  const policy = { onStoreDown: "run" } as const;

  it("runs unprotected, says so, and completes under the token of the claim that had landed", async () => {
    const { process, wire, clock } = world(policy);
    wire.on("claim", answerSwallowed);
    const seen: boolean[] = [];
    const call = process.run({}, (work) => {
      seen.push(work.protected);
      return "done";
    });
    await clock.advance(2_000);
    expect(await call).toEqual({ kind: "unprotected", result: "done" });
    expect(seen).toEqual([false]);
    expect(process.of("unprotected")).toHaveLength(1);
    wire.on("claim", undefined);
    expect(await process.run({}, () => "again")).toMatchObject({ kind: "replayed", result: "done" });
  });

  it("puts its result on record although its claim never landed", async () => {
    const { process, wire, clock } = world(policy);
    wire.on("claim", refused);
    const call = process.run({}, () => "done");
    await clock.settle();
    expect(await call).toEqual({ kind: "unprotected", result: "done" });
    wire.on("claim", undefined);
    expect(await process.run({}, () => "again")).toMatchObject({ kind: "replayed", result: "done" });
  });

  it("keeps the adopted claim alive, and claims it if it had not landed", async () => {
    const { process, wire, clock, another } = world(policy);
    wire.on("claim", firstly(2, refused));
    const work = deferred();
    const call = process.run({}, () => work.promise);
    await clock.advance(15_000);
    expect(wire.count("extend")).toBe(1);
    const elsewhere = codeOf(another({ onInFlight: "reject" }).run({}, () => "ran"));
    await clock.settle();
    expect(await elsewhere).toBe("IN_FLIGHT");
    work.resolve();
    await clock.settle();
    expect(await call).toMatchObject({ kind: "unprotected" });
  });

  it("never runs after the store has answered in flight, whatever fails then", async () => {
    const { process, wire, clock, another } = world(policy);
    const work = deferred();
    const leader = another().run({}, () => work.promise);
    await clock.settle();
    wire.on("claim", async (_, next) => {
      const answer = await next();
      wire.on("claim", refused);
      return answer;
    });
    const repeat = codeOf(process.run({}, () => "ran"));
    await clock.settle();
    expect(await repeat).toBe("STORE_UNAVAILABLE");
    wire.on("claim", undefined);
    work.resolve();
    await leader;
  });

  it("never runs what has waited for an attempt here, though the store fails when that attempt does", async () => {
    const { process, wire, clock } = world(policy);
    const work = deferred();
    const leader = codeOf(process.run({}, () => work.promise));
    await clock.settle();
    const repeat = codeOf(process.run({}, () => "ran"));
    await clock.settle();
    wire.on("claim", refused);
    work.reject(new Error("declined"));
    await clock.settle();
    expect(await leader).toEqual(new Error("declined"));
    expect(await repeat).toBe("STORE_UNAVAILABLE");
  });

  it("lets repeats of this process join the unprotected run", async () => {
    const { process, wire, clock } = world(policy);
    wire.on("claim", silent);
    let ran = 0;
    const work = deferred();
    const calls = [1, 2, 3].map(() =>
      process.run({}, async () => {
        ran += 1;
        await work.promise;
        return "done";
      }),
    );
    await clock.advance(2_000);
    work.resolve();
    await clock.settle();
    expect((await Promise.all(calls)).map(({ kind }) => kind)).toEqual([
      "unprotected",
      "replayed",
      "replayed",
    ]);
    expect(ran).toBe(1);
  });

  it("is refused when the record could not be read, or the store is full: those are answers", async () => {
    const { process, wire, clock } = world(policy);
    wire.on("claim", () => Promise.reject(new OncekeyError("RECORD_UNREADABLE", "damaged")));
    const unreadable = codeOf(process.run({}, () => "ran"));
    await clock.settle();
    expect(await unreadable).toBe("RECORD_UNREADABLE");
    wire.on("claim", () => Promise.resolve({ kind: "full", limit: "records" }));
    const full = codeOf(process.run({}, () => "ran"));
    await clock.settle();
    expect(await full).toBe("CAPACITY_EXCEEDED");
  });
});
