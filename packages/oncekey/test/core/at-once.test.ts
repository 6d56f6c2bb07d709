import { memoryStore } from "oncekey/stores/memory";
import { describe, expect, it } from "vitest";
import type { Awaitable } from "../../src/core/awaitable.js";
import type { Call, Ended } from "../../src/core/call.js";
import { OncekeyError } from "../../src/core/errors.js";
import { NO_FINGERPRINT } from "../../src/core/fingerprint.js";
import { GLOBAL_SCOPE, identify } from "../../src/core/key.js";
import { perform } from "../../src/core/perform.js";
import type { Policy } from "../../src/core/policy.js";
import { resolvePolicy } from "../../src/core/policy-resolution.js";
import type { Store } from "../../src/core/store.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { codeOf, deferred, keyOf, leftovers, startProcess } from "./processes.js";

const OUTCOME = { head: "text/1", body: new Uint8Array([1, 2, 3]) };

function kept(value: string): Ended<string> {
  return { kind: "kept", value, outcome: OUTCOME, notKept: undefined, commit: "everything" };
}

function failed(value: string): Ended<string> {
  return { kind: "failed", value, code: "HTTP_500", performed: "maybe" };
}

/** A process whose store answers without a promise, unless `over` says otherwise. */
function place(over: (store: Store) => Partial<Store> = () => ({})) {
  const clock = manualClock();
  const memory = memoryStore({ clock, sweepIntervalMs: 0 });
  const store: Store = { ...memory, ...over(memory) };
  const process = startProcess({ store, clock });
  const call = (run: () => Awaitable<Ended<string>>, policy: Policy = {}): Call<string> => ({
    identity: identify("", GLOBAL_SCOPE, "op", ["k"]),
    operation: "op",
    label: undefined,
    fingerprint: NO_FINGERPRINT,
    policy: resolvePolicy(
      { name: store.name, traits: store.traits, transactions: false },
      { acceptsLostWrites: true, ...policy },
    ),
    signal: () => undefined,
    carrier: {},
    waitMs: undefined,
    commitRepeats: 0,
    run,
    encodeDone: () => OUTCOME,
  });
  const ask = (run: () => Awaitable<Ended<string>>, policy?: Policy) =>
    perform(process.engine, call(run, policy));
  return { clock, memory, process, ask };
}

describe("a store that answers at once", () => {
  it("lets work that ends at once be answered before anybody else has a turn", async () => {
    const { process, memory, ask } = place();
    expect(ask(() => kept("done"))).toEqual({ kind: "executed", value: "done", attempt: 1, ending: "kept" });
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
    expect((await memory.find(keyOf()))?.state).toBe("completed");
    expect(process.events.map(({ type }) => type)).toEqual(["claimed", "completed", "finished"]);
  });

  it("replays at once", () => {
    const { process, ask } = place();
    expect(ask(() => kept("done"))).not.toBeInstanceOf(Promise);
    const again = ask(() => kept("never"));
    expect(again).toMatchObject({ kind: "replayed", outcome: OUTCOME, waitedMs: 0 });
    expect(process.of("finished").map(({ outcome }) => outcome)).toEqual(["executed", "replayed"]);
  });

  it("makes one of two callers wait for the work of the other", async () => {
    const { clock, ask, process } = place();
    const end = deferred<Ended<string>>();
    const first = ask(() => end.promise);
    const second = ask(() => kept("never"));
    expect([first, second]).toEqual([expect.any(Promise), expect.any(Promise)]);
    end.resolve(kept("done"));
    await clock.settle();
    expect(await first).toMatchObject({ kind: "executed", value: "done" });
    expect(await second).toMatchObject({ kind: "replayed" });
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
  });

  it("renews the claim of work that goes on", async () => {
    const { clock, memory, ask } = place();
    const end = deferred<Ended<string>>();
    const call = ask(() => end.promise, { leaseMs: 9_000 });
    await clock.advance(20_000);
    expect(await memory.status([keyOf()])).toMatchObject([{ state: "claimed" }]);
    end.resolve(kept("done"));
    expect(await call).toMatchObject({ kind: "executed", ending: "kept" });
  });

  it("frees the key of work that fails at once, and of work that throws", async () => {
    const { process, memory, ask } = place();
    expect(await ask(() => failed("no"))).toMatchObject({ kind: "executed", ending: "released" });
    expect(await memory.find(keyOf())).toBeUndefined();
    const bug = new Error("a bug of the adapter");
    const thrown = ask(() => {
      throw bug;
    });
    // Never thrown at whoever asks: there is one way to fail.
    expect(thrown).toBeInstanceOf(Promise);
    expect(await codeOf(thrown)).toBe(bug);
    expect(await memory.find(keyOf())).toBeUndefined();
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
  });

  it("notices work that asks for its own key", async () => {
    const { ask } = place();
    const inner: unknown[] = [];
    const carrier = {};
    const outer = ask(() => {
      inner.push(ask(() => kept("never"), { onInFlight: "reject" }));
      return kept(String(carrier));
    });
    expect(outer).toMatchObject({ kind: "executed" });
    expect(await codeOf(inner[0])).toBe("IN_FLIGHT");
  });
});

describe("a store that throws at once", () => {
  it("is asked again with the same token, and may answer then", async () => {
    const tokens: string[] = [];
    const { ask, process } = place((store) => ({
      claim(request) {
        tokens.push(request.token);
        if (tokens.length === 1) throw new Error("not connected");
        return store.claim(request);
      },
    }));
    expect(await ask(() => kept("done"))).toMatchObject({ kind: "executed", attempt: 1 });
    expect(new Set(tokens).size).toBe(1);
    expect(process.of("store-down")).toHaveLength(1);
  });

  it("twice is down: nothing runs, and nothing is left claimed or waiting", async () => {
    const { ask, process } = place(() => ({
      claim() {
        throw new Error("not connected");
      },
    }));
    let runs = 0;
    const refusal = ask(() => {
      runs += 1;
      return kept("never");
    });
    expect(await codeOf(refusal)).toBe("STORE_UNAVAILABLE");
    expect(runs).toBe(0);
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
  });

  it("while completing keeps the answer, and the completion lands later", async () => {
    let down = true;
    const { ask, clock, memory, process } = place((store) => ({
      complete(request) {
        if (down) throw new Error("not connected");
        return store.complete(request);
      },
    }));
    expect(await ask(() => kept("done"))).toMatchObject({ kind: "executed", ending: "pending" });
    // Meanwhile repeats are answered from what is pending.
    expect(await ask(() => kept("never"))).toMatchObject({ kind: "replayed", outcome: OUTCOME });
    down = false;
    await clock.advance(1_000);
    expect((await memory.find(keyOf()))?.state).toBe("completed");
    expect(process.of("completed")).toMatchObject([{ how: "late" }]);
  });

  it("a coded answer about the record is that answer", async () => {
    const { ask } = place(() => ({
      claim() {
        throw new OncekeyError("RECORD_UNREADABLE", "damaged");
      },
    }));
    expect(await codeOf(ask(() => kept("never")))).toBe("RECORD_UNREADABLE");
  });
});

describe("a store that answers sometimes at once and sometimes later", () => {
  it.each([
    ["claims later", (store: Store) => ({ claim: async (request) => store.claim(request) })],
    ["completes later", (store: Store) => ({ complete: async (request) => store.complete(request) })],
  ] satisfies [string, (store: Store) => Partial<Store>][])("%s", async (_, over) => {
    const { ask, process } = place(over);
    const call = ask(() => kept("done"));
    expect(call).toBeInstanceOf(Promise);
    expect(await call).toMatchObject({ kind: "executed", ending: "kept" });
    expect(await ask(() => kept("never"))).toMatchObject({ kind: "replayed" });
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
  });

  it("may answer with what is like a promise", async () => {
    const { ask } = place((store) => ({
      claim: (request) =>
        // biome-ignore lint/suspicious/noThenProperty: that is what it is about.
        ({ then: (heard: (outcome: unknown) => void) => heard(store.claim(request)) }) as never,
    }));
    expect(await ask(() => kept("done"))).toMatchObject({ kind: "executed", value: "done" });
  });
});
