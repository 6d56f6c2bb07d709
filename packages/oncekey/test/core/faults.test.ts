import { describe, expect, it } from "vitest";
import type { Call } from "../../src/core/call.js";
import { NO_FINGERPRINT } from "../../src/core/fingerprint.js";
import { GLOBAL_SCOPE, identify } from "../../src/core/key.js";
import { perform } from "../../src/core/perform.js";
import type { Policy } from "../../src/core/policy.js";
import { resolvePolicy } from "../../src/core/policy-resolution.js";
import { codeOf, keyOf, leftovers, world } from "./processes.js";

/** A call of an adapter whose own code fails, which families should never let happen. */
function faulty(place: ReturnType<typeof world>, policy: Policy): Call<never> {
  const { store } = place.wire;
  const facts = { name: store.name, traits: store.traits, transactions: false };
  return {
    identity: identify("", GLOBAL_SCOPE, "op", ["k"]),
    operation: "op",
    label: undefined,
    fingerprint: NO_FINGERPRINT,
    policy: resolvePolicy(facts, { acceptsLostWrites: true, ...policy }),
    signal: () => undefined,
    carrier: undefined,
    waitMs: undefined,
    commitRepeats: 0,
    run: () => Promise.reject(new Error("a bug of the adapter")),
    encodeDone: () => ({ head: "", body: undefined }),
  };
}

describe("an adapter that fails itself", () => {
  it("frees the key, and leaves nobody waiting", async () => {
    const place = world();
    const { process, wire, clock } = place;
    const call = codeOf(perform(process.engine, faulty(place, {})));
    const repeat = process.run({ fingerprint: "off" }, () => "done");
    await clock.settle();
    expect(await call).toEqual(new Error("a bug of the adapter"));
    expect(await repeat).toMatchObject({ kind: "executed", result: "done" });
    expect((await wire.store.find(keyOf()))?.state).toBe("completed");
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
  });

  it("under at-most-once leaves an unknown outcome: nobody knows what ran", async () => {
    const place = world();
    const policy = { guarantee: "at-most-once" } as const;
    const call = codeOf(perform(place.process.engine, faulty(place, policy)));
    await place.clock.settle();
    expect(await call).toEqual(new Error("a bug of the adapter"));
    expect((await place.wire.store.find(keyOf()))?.state).toBe("unknown");
  });
});
