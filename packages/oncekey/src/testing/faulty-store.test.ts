import { memoryStore } from "oncekey/stores/memory";
import { describe, expect, it } from "vitest";
import type { ClaimOutcome, ClaimRequest, Store, StoreNotice } from "../core/store.js";
import { STORE_METHODS } from "../core/store-checks.js";
import { faultyStore } from "./faulty-store.js";
import { manualClock } from "./manual-clock.js";
import { claimRequest, repeatOf } from "./requests.js";
import { completion } from "./store-contract/scenes.js";

function setUp() {
  const clock = manualClock();
  const behind = memoryStore({ clock, sweepIntervalMs: 0 });
  return { clock, behind, store: faultyStore(behind, {}, { clock }) };
}

async function settled(clock: { settle(): Promise<void> }, call: unknown): Promise<string> {
  let state = "pending";
  Promise.resolve(call).then(
    () => {
      state = "answered";
    },
    () => {
      state = "rejected";
    },
  );
  await clock.settle();
  return state;
}

describe("faultyStore", () => {
  it("is the store behind it as long as nothing is planned", async () => {
    const { behind, store } = setUp();
    const request = claimRequest();
    expect(await store.claim(request)).toEqual(await behind.claim(request));
    expect(store.traits).toBe(behind.traits);
    expect(store.begin).toBeUndefined();
    expect([store.count("claim"), store.count("complete")]).toEqual([1, 0]);
    expect(store.requests("claim")).toEqual([request]);
  });

  it("stands before any kind of object, and keeps what else a store has", async () => {
    const { behind } = setUp();
    class Instance {
      readonly name = "instance";
      readonly traits = behind.traits;
      readonly warnings = ["keeps nothing"];
      claims = 0;
      async claim(request: ClaimRequest): Promise<ClaimOutcome> {
        this.claims += 1;
        return behind.claim(request);
      }
      notices(listen: (notice: StoreNotice) => void) {
        listen({ kind: "warning", text: this.name });
        return { close: () => undefined };
      }
    }
    const instance = new Instance();
    for (const name of STORE_METHODS) {
      if (name !== "claim") Object.assign(Instance.prototype, { [name]: behind[name] });
    }
    const store = faultyStore(instance as unknown as Store);
    await store.claim(claimRequest());
    const heard: unknown[] = [];
    store.notices?.((notice) => heard.push(notice));
    expect([instance.claims, store.warnings]).toEqual([1, ["keeps nothing"]]);
    expect(heard).toMatchObject([{ text: "instance" }]);
    expect([store.watch, store.join, store.pin]).toEqual([undefined, undefined, undefined]);
  });

  it.each([
    ["reject", "rejected", false],
    ["reject-after-landing", "rejected", true],
    ["hang", "pending", false],
    ["hang-after-landing", "pending", true],
  ] as const)("%s: %s, landed: %s", async (kind, state, landed) => {
    const { clock, behind, store } = setUp();
    const request = claimRequest();
    store.plan({ claim: { kind } });
    expect(await settled(clock, store.claim(request))).toBe(state);
    expect((await behind.find(request.key)) !== undefined).toBe(landed);
  });

  it("throws at once where a client would, and with the error that it is given", () => {
    const { store } = setUp();
    const error = new Error("closed");
    store.plan({ claim: { kind: "throw", error } });
    expect(() => store.claim(claimRequest())).toThrow(error);
  });

  it("answers late, or lands late", async () => {
    const { clock, behind, store } = setUp();
    const [early, late] = [claimRequest(), claimRequest()];
    store.plan({
      claim: [
        { kind: "answer-late", afterMs: 100 },
        { kind: "land-late", afterMs: 100 },
      ],
    });
    const calls = [store.claim(early), store.claim(late)];
    await clock.advance(99);
    expect(await behind.find(early.key)).toBeDefined();
    expect(await behind.find(late.key)).toBeUndefined();
    await clock.advance(1);
    expect(await Promise.all(calls)).toMatchObject([{ kind: "claimed" }, { kind: "claimed" }]);
  });

  it("follows a list by the number of the call, a function by the request, and starts anew with a new plan", async () => {
    const { store } = setUp();
    const request = claimRequest();
    store.plan({ claim: [undefined, { kind: "reject" }] });
    await store.claim(request);
    await expect(store.claim(request)).rejects.toThrow(/planned fault/);
    await store.claim(request);
    store.plan({ claim: [{ kind: "reject" }] });
    await expect(store.claim(request)).rejects.toThrow(/planned fault/);
    store.plan({
      claim: (asked, call) => (asked === request && call === 2 ? { kind: "reject" } : undefined),
    });
    await store.claim(request);
    await expect(store.claim(request)).rejects.toThrow(/planned fault/);
    store.heal();
    await store.claim(request);
    expect(store.count("claim")).toBe(7);
  });

  it("loses wake-ups while it is deaf", async () => {
    const { clock, store } = setUp();
    const [lost, heard] = [claimRequest(), claimRequest()];
    const woken: string[] = [];
    for (const request of [lost, heard]) {
      await store.claim(request);
      store.watch?.(request.key, () => woken.push(request.key));
    }
    store.plan({ watch: "deaf" });
    await store.complete(completion(lost));
    await clock.settle();
    store.heal();
    await store.complete(completion(heard));
    await clock.settle();
    expect(woken).toEqual([heard.key]);
    expect(await store.claim(repeatOf(lost))).toMatchObject({ kind: "completed" });
  });
});
