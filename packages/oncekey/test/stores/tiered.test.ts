import { createIdempotency, type IdempotencyOptions, type Store } from "oncekey";
import { memoryStore } from "oncekey/stores/memory";
import { type ReplayTierOptions, replayTier, type SharedReplays } from "oncekey/stores/tiered";
import { type FaultyStore, faultyStore, type ManualClock, manualClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { codeOf, deferred } from "../core/processes.js";

const call = (key = "k", input: unknown = 1) => ({ operation: "op", key, input, scope: "tenant" });
const target = { operation: "op", key: "k", scope: "tenant" };
const note = { by: "ops", reason: "asked to" };

interface Process {
  readonly store: FaultyStore<unknown>;
  readonly clock: ManualClock;
  run(key?: string, input?: unknown): Promise<string>;
  readonly idempotency: ReturnType<typeof createIdempotency<unknown>>;
  /** Calls that have reached the store. */
  trips(): number;
}

/** Processes with a tier each, on one store. */
function processes(count: number, options: ReplayTierOptions = {}, policy: Partial<IdempotencyOptions> = {}) {
  const clock = manualClock();
  const records = memoryStore({ clock, sweepIntervalMs: 0 }) as Store;
  let runs = 0;
  const one = (): Process => {
    const store = faultyStore(records, {}, { clock });
    const tier = replayTier<unknown>(store, { clock, ...options });
    const idempotency = createIdempotency<unknown>({ store: tier, clock, ...(policy as object) });
    return {
      store,
      clock,
      idempotency,
      run: (key, input) => idempotency.run(call(key, input), () => `run ${++runs}`),
      trips: () =>
        (["claim", "complete", "extend", "release", "resolve", "status", "find"] as const).reduce(
          (sum, method) => sum + store.count(method),
          0,
        ),
    };
  };
  return { clock, records, all: Array.from({ length: count }, one) as [Process, Process] };
}

describe("a tier of replays", () => {
  it("answers a replay without one round trip, in the process that ran it and in others that have seen it", async () => {
    const { all, clock } = processes(2);
    const [one, other] = all;
    expect(await one.run()).toBe("run 1");
    const trips = one.trips();
    for (let repeat = 0; repeat < 10; repeat += 1) expect(await one.run()).toBe("run 1");
    expect(one.trips()).toBe(trips);
    expect(await other.run()).toBe("run 1");
    await clock.settle();
    const seen = other.trips();
    for (let repeat = 0; repeat < 10; repeat += 1) expect(await other.run()).toBe("run 1");
    expect(other.trips()).toBe(seen);
  });

  it("refuses another request with the key, and answers one that cannot be compared, as the store would", async () => {
    const { all } = processes(1);
    const [{ run, trips, idempotency }] = all;
    await run();
    const before = trips();
    expect(await codeOf(run("k", 2))).toBe("KEY_REUSED");
    const { input: _, ...blind } = call();
    expect(await idempotency.run({ ...blind, fingerprint: "off" }, () => "no")).toBe("run 1");
    expect(trips()).toBe(before);
  });

  it("asks the store again when its time is over, counted from before the completion or the read", async () => {
    const { all, clock } = processes(2, { replayForMs: 10_000 });
    const [one, other] = all;
    one.store.plan({ complete: { kind: "land-late", afterMs: 1_500 } });
    const running = one.run();
    await clock.advance(1_500);
    await running;
    await clock.advance(8_499);
    const before = one.trips();
    await one.run();
    expect(one.trips()).toBe(before);
    await clock.advance(1);
    await one.run();
    expect(one.trips()).toBeGreaterThan(before);
    other.store.plan({ find: { kind: "answer-late", afterMs: 1_000 } });
    await other.run();
    await clock.advance(9_999);
    const seen = other.store.count("claim");
    await other.run();
    expect(other.store.count("claim")).toBe(seen);
    await clock.advance(1);
    await other.run();
    expect(other.store.count("claim")).toBe(seen + 1);
  });

  it("never outlives the retention: the work runs again when the record has ended", async () => {
    const { all, clock } = processes(2, {}, { retentionMs: 5_000 });
    const [one, other] = all;
    await one.run();
    await clock.advance(4_000);
    expect(await other.run()).toBe("run 1");
    await clock.advance(1_000);
    expect([await other.run(), await one.run()]).toEqual(["run 2", "run 2"]);
  });

  it("is told of a forget within the stated time, until which nobody runs the work anew", async () => {
    const { all, clock } = processes(2, { replayForMs: 10_000 }, { onInFlight: "reject" });
    const [one, other] = all;
    await one.run();
    await other.run();
    await clock.settle();
    const forgotten = await one.idempotency.forget(target, note);
    expect(forgotten).toEqual({ kind: "applied", effectiveAfterMs: 11_000 });
    // Where it was forgotten the key is refused at once; elsewhere the old result is still given, and no new one.
    expect(await codeOf(one.run())).toBe("IN_FLIGHT");
    expect(await other.run()).toBe("run 1");
    await clock.advance(10_000);
    expect([await codeOf(one.run()), await codeOf(other.run())]).toEqual(["IN_FLIGHT", "IN_FLIGHT"]);
    await clock.advance(1_000);
    expect([await other.run(), await one.run()]).toEqual(["run 2", "run 2"]);
  });

  it("holds nothing of a completion that was refused, or whose answer was lost", async () => {
    const { all, records, clock } = processes(1, {}, { completionRetryMs: 1 });
    const [{ run, store }] = all;
    store.plan({ complete: { kind: "reject" } });
    expect(await run()).toBe("run 1");
    await clock.advance(60_000);
    const { key } = (await records.list({ limit: 1 })).records[0] ?? {};
    expect(key).toBeDefined();
    store.heal();
    // The lease has lapsed, so the work runs again; a copy of the first result would hide that.
    expect(await run()).toBe("run 2");
  });

  it("holds what exactly-once work has committed, and nothing of a commit that was refused", async () => {
    for (const answer of ["committed", "refused"] as const) {
      const clock = manualClock();
      const records = memoryStore({ clock, sweepIntervalMs: 0 }) as Store;
      const counted = faultyStore(records, {}, { clock });
      const begin: Store["begin"] = (request) => ({
        handle: undefined,
        used: () => true,
        rollback: () => Promise.resolve(),
        async commit(outcome) {
          if (answer === "refused") return { kind: "refused", reason: "40001" };
          await records.complete({ ...request, outcome });
          return { kind: "committed" };
        },
      });
      const store = replayTier<unknown>({ ...counted, begin }, { clock });
      const idempotency = createIdempotency<unknown, "exactly-once">({
        store,
        clock,
        guarantee: "exactly-once",
      });
      const first = await codeOf(idempotency.run(call(), () => "kept"));
      const claims = counted.count("claim");
      const repeat = await codeOf(idempotency.run(call(), () => "anew"));
      if (answer === "committed")
        expect([first, repeat, counted.count("claim")]).toEqual(["kept", "kept", claims]);
      else
        expect([first, repeat, counted.count("claim")]).toEqual([
          "NOT_COMMITTED",
          "NOT_COMMITTED",
          claims + 1,
        ]);
    }
  });

  it("is bounded by number and by bytes, and does not hold what is too large", async () => {
    const { all } = processes(1, { maxRecords: 2 });
    const [{ run, trips }] = all;
    for (const key of ["a", "b", "c"]) await run(key);
    const before = trips();
    await run("c");
    await run("b");
    expect(trips()).toBe(before);
    await run("a");
    expect(trips()).toBeGreaterThan(before);
    const small = processes(1, { maxRecordBytes: 3 }).all[0];
    await small.run();
    const asked = small.trips();
    await small.run();
    expect(small.trips()).toBeGreaterThan(asked);
    const tight = processes(1, { maxBytes: 900 }).all[0];
    await tight.run("a");
    await tight.run("b");
    await tight.run("c");
    const held = tight.trips();
    await tight.run("c");
    expect(tight.trips()).toBe(held);
    await tight.run("a");
    expect(tight.trips()).toBeGreaterThan(held);
  });

  it("goes on without what it cannot find out", async () => {
    const { all, clock } = processes(2);
    const [one, other] = all;
    await one.run();
    other.store.plan({ find: { kind: "reject" } });
    expect([await other.run(), await other.run()]).toEqual(["run 1", "run 1"]);
    await clock.settle();
  });

  it("refuses a store that is none and options that make no sense, all at once", () => {
    const wrong = { replayForMs: 0, maxRecords: 0, shared: {}, ttl: 5 };
    expect(() => replayTier(undefined as never, wrong as never)).toThrowError(
      expect.objectContaining({
        code: "CONFIGURATION_INVALID",
        problems: ["store", "ttl", "replayForMs", "maxRecords", "shared"].map((name) =>
          expect.stringMatching(new RegExp(`^${name}`)),
        ),
      }),
    );
  });
});

/** What Redis would be, on the clock of the test. */
function server(clock: ManualClock) {
  const values = new Map<string, { readonly value: Uint8Array; readonly endsAtMs: number }>();
  const replays: SharedReplays = {
    async get(name) {
      const found = values.get(name);
      return found !== undefined && clock.monotonicMs() < found.endsAtMs ? found.value : null;
    },
    async set(name, value, forMs) {
      values.set(name, { value, endsAtMs: clock.monotonicMs() + forMs });
    },
    async delete(name) {
      values.delete(name);
    },
  };
  return { replays, values };
}

describe("a tier that processes share", () => {
  function shared(
    options: ReplayTierOptions = {},
    change: (replays: SharedReplays) => SharedReplays = (same) => same,
  ) {
    const clock = manualClock();
    const { replays, values } = server(clock);
    const world = processes(2, { replayForMs: 10_000, clock, shared: change(replays), ...options });
    return { ...world, values, serverClock: clock };
  }

  it("answers a process that has never seen the record, without its store", async () => {
    const { all, values } = shared();
    const [one, other] = all;
    await one.run();
    await Promise.resolve();
    expect(values.size).toBe(1);
    expect([await other.run(), other.trips()]).toEqual(["run 1", 0]);
    expect(await codeOf(other.run("k", 2))).toBe("KEY_REUSED");
    expect(other.trips()).toBe(0);
  });

  it("gives an answer half as long as a copy may live, and none once it is forgotten", async () => {
    const { all, serverClock, values } = shared();
    const [one, other] = all;
    await one.run();
    await serverClock.advance(5_000);
    await other.run();
    expect(other.trips()).toBeGreaterThan(0);
    await one.idempotency.forget(target, note);
    expect(values.size).toBe(0);
  });

  it("costs time and no more when it is down, hangs, or gives what is damaged", async () => {
    const broken: ((replays: SharedReplays) => SharedReplays)[] = [
      () => ({
        get: () => Promise.reject(new Error("down")),
        set: () => {
          throw new Error("down");
        },
        delete: () => Promise.reject(new Error("down")),
      }),
      (replays) => ({ ...replays, get: async () => Uint8Array.of(1, 2, 3) }),
      (replays) => ({ ...replays, get: async () => new TextEncoder().encode('{"fingerprint":"x"}\nbody') }),
    ];
    for (const change of broken) {
      const [one, other] = shared({}, change).all;
      expect([await one.run(), await other.run()]).toEqual(["run 1", "run 1"]);
    }
    const never = deferred<Uint8Array>();
    const hanging = shared({}, (replays) => ({ ...replays, get: () => never.promise }));
    const answer = hanging.all[0].run();
    await hanging.serverClock.advance(50);
    expect(await answer).toBe("run 1");
  });
});
