import { describe, expect, it } from "vitest";
import { memoryStore } from "../stores/memory/index.js";
import type { OncekeyError } from "./errors.js";
import { createIdempotency } from "./idempotency.js";
import { DEFAULT_LIMITS } from "./limits.js";
import { keepsStatus, layerPolicies, type Policy, refusedBeforeWork, type StoreFacts } from "./policy.js";
import { policyProblems, resolveLimits } from "./policy-checks.js";
import { resolvePolicy } from "./policy-resolution.js";

const keepsNothing = { processCrash: true, powerLoss: true, failover: false, eviction: false };
const keepsAll = { processCrash: false, powerLoss: false, failover: false, eviction: false };
const forgetful: StoreFacts = {
  name: "memory",
  traits: { forgetsOn: keepsNothing, reach: "process" },
  transactions: false,
};
const durable: StoreFacts = {
  name: "database",
  traits: { forgetsOn: keepsAll, reach: "network" },
  transactions: true,
};

const resolve = (...layers: (Policy | undefined)[]) => resolvePolicy(durable, ...layers);
const problemsOf = (policy: object) => policyProblems(policy as Policy, durable);

describe("the built-in policy", () => {
  it("is this", () => {
    const { keep, ...rest } = resolve();
    expect(rest).toEqual({
      guarantee: "at-least-once",
      leaseMs: 30_000,
      retentionMs: 86_400_000,
      onCompleted: "replay",
      waitMs: 5_000,
      onReleased: "takeover",
      onLapse: "takeover",
      reconcile: undefined,
      reconcileTimeoutMs: 10_000,
      onStoreDown: "reject",
      storeTimeoutMs: 2_000,
      maxRunMs: 900_000,
      maxAttempts: undefined,
      completionRetryMs: 3_600_000,
      maxResultBytes: 1_048_576,
      maxTransactionMs: 1_000,
      keyLabels: false,
    });
    expect(keep({ kind: "returned", value: undefined })).toBe(true);
    expect(keep({ kind: "threw", error: undefined })).toBe(false);
  });

  it("keeps answers that speak of the work, not of the caller or the moment", () => {
    const kept = [200, 201, 204, 303, 400, 402, 403, 404, 409, 410, 422, 499];
    const not = [401, 407, 408, 421, 425, 429, 500, 502, 503, 599];
    expect(kept.filter(keepsStatus)).toEqual(kept);
    expect(not.filter(keepsStatus)).toEqual([]);
    expect([401, 407, 421, 408, 425, 429, 500].filter(refusedBeforeWork)).toEqual([401, 407, 421]);
  });
});

describe("layers", () => {
  it("meet most specific first; what is undefined is not set; a value equal to a default still wins", () => {
    const policy = resolve(
      { leaseMs: 30_000, retentionMs: undefined },
      { leaseMs: 60_000, retentionMs: 1_000, onCompleted: "reject" },
      { maxAttempts: 3 },
    );
    expect(policy).toMatchObject({
      leaseMs: 30_000,
      retentionMs: 1_000,
      onCompleted: "reject",
      maxAttempts: 3,
    });
  });

  it("of false and 0 are set", () => {
    const merged = layerPolicies(
      { keyLabels: false, maxResultBytes: 0 },
      { keyLabels: true, maxResultBytes: 9 },
    );
    expect(merged).toEqual({ keyLabels: false, maxResultBytes: 0 });
  });

  it("that refuse completed work refuse it in flight too, unless set", () => {
    expect(resolve({ onCompleted: "reject" })).toMatchObject({ waitMs: 0, onReleased: "refuse" });
    expect(resolve({ onCompleted: "reject", onInFlight: {} })).toMatchObject({ waitMs: 5_000 });
    expect(resolve({ onCompleted: "reject" }, { onInFlight: { waitMs: 1 } })).toMatchObject({ waitMs: 1 });
  });

  it("say what a lapse means by guarantee, unless set", () => {
    const ask = () => ({ kind: "unknown" }) as const;
    expect(resolve({ guarantee: "at-most-once" })).toMatchObject({ onLapse: "hold", reconcile: undefined });
    expect(resolve({ onLapsed: "hold" })).toMatchObject({ onLapse: "hold" });
    expect(resolve({ onLapsed: ask })).toMatchObject({ onLapse: "hold", reconcile: ask });
  });

  it("with a short lease wait as much shorter for the store", () => {
    expect(resolve({ leaseMs: 400 }).storeTimeoutMs).toBe(100);
  });
});

describe("a policy with mistakes", () => {
  const durations = ["leaseMs", "retentionMs", "maxRunMs", "storeTimeoutMs", "completionRetryMs"] as const;
  for (const name of durations) {
    it(`is refused: ${name} is no duration`, () => {
      const wrong = [0, -1, Number.NaN, Number.POSITIVE_INFINITY, "1 fortnight", "30s", null, 1e15, true];
      for (const value of wrong) expect(problemsOf({ [name]: value }).join()).toContain(name);
      expect(problemsOf({ [name]: undefined })).toEqual([]);
    });
  }

  it("is refused with every mistake at once", () => {
    const wrong = {
      guarantee: "exactly-twice",
      leaseMs: -1,
      retentionMs: "1 fortnight",
      onCompleted: "ignore",
      onInFlight: { waitMs: Number.NaN, onReleased: "maybe" },
      onLapsed: "shrug",
      onStoreDown: "panic",
      keep: true,
      maxAttempts: 0,
      maxResultBytes: -1,
    };
    const named = problemsOf(wrong).map((problem) => problem.split(" ")[0]);
    expect(named.sort()).toEqual(
      [...Object.keys(wrong), "onInFlight.waitMs", "onInFlight.onReleased"]
        .filter((name) => name !== "onInFlight")
        .sort(),
    );
    for (const value of [5, null, []]) expect(problemsOf({ onInFlight: value })).toHaveLength(1);
    expect(problemsOf({ onInFlight: { waitms: 5 } })).toEqual(["onInFlight.waitms does not exist"]);
  });

  it("is refused for a switch that is no boolean, whose text would count as true", () => {
    const problems = problemsOf({ acceptsLostWrites: "false", keyLabels: 0 });
    expect(problems.map((problem) => problem.split(" ")[0])).toEqual(["acceptsLostWrites", "keyLabels"]);
    expect(problemsOf({ acceptsLostWrites: false, keyLabels: true })).toEqual([]);
  });

  it("is refused in words, also for what has no text", () => {
    for (const value of [Object.create(null), Symbol("5"), 5n, () => 5]) {
      expect(problemsOf({ leaseMs: value, maxAttempts: value })).toHaveLength(2);
      expect(problemsOf({ guarantee: value, storeTimeoutMs: value })).toHaveLength(2);
      expect(problemsOf({ onLapsed: value, guarantee: "toString" })).not.toEqual([]);
    }
  });

  it("is refused for pairs that contradict each other", () => {
    const ask = () => ({ kind: "unknown" });
    const illegal = [
      { guarantee: "at-most-once", onLapsed: "rerun" },
      { guarantee: "exactly-once", onLapsed: "hold" },
      { guarantee: "exactly-once", onLapsed: ask },
      { guarantee: "at-most-once", onStoreDown: "run" },
      { guarantee: "exactly-once", onStoreDown: "run" },
      { leaseMs: 4_000, storeTimeoutMs: 1_001 },
    ];
    const legal = [
      { guarantee: "at-least-once", onLapsed: "rerun" },
      { guarantee: "at-least-once", onLapsed: ask },
      { guarantee: "at-least-once", onLapsed: "hold", onStoreDown: "run" },
      { guarantee: "at-most-once", onLapsed: "hold" },
      { guarantee: "at-most-once", onLapsed: ask },
      { guarantee: "exactly-once", onLapsed: "rerun" },
      { leaseMs: 4_000, storeTimeoutMs: 1_000 },
    ];
    for (const policy of illegal) expect(problemsOf(policy)).toHaveLength(1);
    for (const policy of legal) expect(problemsOf(policy)).toEqual([]);
  });

  it("is refused for what the store cannot give", () => {
    expect(policyProblems({ guarantee: "exactly-once" }, forgetful)[0]).toContain("transactions");
    const [problem] = policyProblems({ guarantee: "at-most-once" }, forgetful);
    expect(problem).toMatch(/processCrash, powerLoss.*acceptsLostWrites/);
    expect(policyProblems({ guarantee: "at-most-once", acceptsLostWrites: true }, forgetful)).toEqual([]);
  });
});

describe("an instance", () => {
  const messageOf = (make: () => unknown): OncekeyError => {
    try {
      make();
    } catch (error) {
      return error as OncekeyError;
    }
    throw new Error("It was made");
  };

  it("is refused with every mistake of policy, limits, scope and names at once", () => {
    const error = messageOf(() =>
      createIdempotency({
        store: memoryStore(),
        scope: "local",
        leaseMs: 0,
        leasMs: 5,
        limits: { maxWaiters: 0, maxKeys: 1 },
      } as never),
    );
    expect(error.code).toBe("CONFIGURATION_INVALID");
    const named = error.problems.map((problem) => problem.split(" ")[0]);
    expect(named.sort()).toEqual(["leasMs", "leaseMs", "limits.maxKeys", "limits.maxWaiters", "scope"]);
    for (const problem of error.problems) expect(error.message).toContain(problem);
  });

  it("is refused a client where a store is wanted, in words", () => {
    const { traits, ...traitless } = memoryStore();
    expect(traits).toBeDefined();
    for (const store of [undefined, null, {}, { get() {}, set() {} }, memoryStore, traitless]) {
      const { code, problems } = messageOf(() => createIdempotency({ store } as never));
      expect([code, problems]).toEqual(["CONFIGURATION_INVALID", [expect.stringMatching(/^store /)]]);
    }
  });

  it("is refused what is of another kind, all at once", () => {
    const store = memoryStore();
    const wrong = { namespace: 5, onEvent: {}, clock: { now: Date.now }, limits: 5, waitUntil: null };
    const { code, problems } = messageOf(() => createIdempotency({ store, ...wrong } as never));
    expect(code).toBe("CONFIGURATION_INVALID");
    expect(problems.map((problem) => problem.split(" ")[0]).sort()).toEqual(Object.keys(wrong).sort());
  });

  it("is refused limits that only every object has, and options that are none", () => {
    const { problems } = resolveLimits({ toString: 5, constructor: 5 } as never);
    expect(problems).toEqual(["limits.toString does not exist", "limits.constructor does not exist"]);
    expect(resolveLimits(null as never).problems).toHaveLength(1);
    for (const options of [undefined, null, 5, []]) {
      expect(messageOf(() => createIdempotency(options as never)).code).toBe("CONFIGURATION_INVALID");
    }
  });

  it("fills limits that are not set", () => {
    expect(resolveLimits({ maxWaiters: 5, maxWaitMs: undefined }).limits).toEqual({
      ...DEFAULT_LIMITS,
      maxWaiters: 5,
    });
  });
});
