/** What the memory store does when it is full, by count, by scope and by bytes. */
import { type MemoryStoreOptions, memoryStore } from "oncekey/stores/memory";
import { manualClock } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";
import type { StoredOutcome } from "../../src/core/record.js";
import type { ClaimRequest, Store } from "../../src/core/store.js";
import { claimRequest, identityOf, newScopeId, newToken, repeatOf } from "../../src/testing/requests.js";
import { completion, makeUnknown, releaseOf } from "../../src/testing/store-contract/scenes.js";

const FULL = { kind: "full", limit: "records" };
const SCOPE_FULL = { kind: "full", limit: "scope" };

function setUp(options: MemoryStoreOptions = {}) {
  const clock = manualClock();
  const { maxRecords } = options;
  const store = memoryStore({ maxRecordsPerScope: maxRecords, sweepIntervalMs: 0, ...options, clock });
  return { clock, store };
}

/** A new key of a scope that nobody has seen. */
function stranger(): ClaimRequest {
  return claimRequest({ scopeId: newScopeId() });
}

async function claims(
  store: Store,
  count: number,
  parts: Partial<ClaimRequest> = {},
): Promise<ClaimRequest[]> {
  const requests = Array.from({ length: count }, () => claimRequest(parts));
  for (const request of requests) expect(await store.claim(request)).toMatchObject({ kind: "claimed" });
  return requests;
}

async function completions(
  store: Store,
  count: number,
  parts: Partial<ClaimRequest> = {},
  outcome: StoredOutcome = SMALL,
): Promise<ClaimRequest[]> {
  const requests = await claims(store, count, parts);
  for (const request of requests) await store.complete({ ...completion(request), outcome });
  return requests;
}

const SMALL: StoredOutcome = { head: "200", body: new Uint8Array(10) };
const KILOBYTE: StoredOutcome = { head: "200", body: new Uint8Array(1_000) };

describe("a store that is full by count", () => {
  it("refuses new keys and goes on with those that it knows", async () => {
    const { store } = setUp({ maxRecords: 3 });
    const [live, done] = await claims(store, 3);
    await store.complete(completion(done as ClaimRequest));
    expect(await store.claim(stranger())).toEqual(FULL);
    expect(await store.extend(live as ClaimRequest)).toEqual({ kind: "extended" });
    expect(await store.claim(repeatOf(done as ClaimRequest))).toMatchObject({ kind: "completed" });
    expect(await store.complete(completion(live as ClaimRequest))).toMatchObject({ how: "stored" });
    expect(await store.claim(stranger())).toEqual(FULL);
  });

  it("takes a new key as soon as one is released, forgotten or has expired", async () => {
    const { clock, store } = setUp({ maxRecords: 2 });
    const [released, expiring] = await claims(store, 2, { leaseMs: 10, retentionMs: 10 });
    await store.release(releaseOf(released as ClaimRequest));
    await claims(store, 1);
    expect(await store.claim(stranger())).toEqual(FULL);
    await clock.advance(20);
    expect(await store.find((expiring as ClaimRequest).key)).toBeUndefined();
    await claims(store, 1);
    expect(await store.claim(stranger())).toEqual(FULL);
  });

  it("never drops a live claim, a lapsed one or an unknown outcome, even where it may forget", async () => {
    const { clock, store } = setUp({ maxRecords: 3, onFull: "forget-oldest-completed" });
    const [lapsed] = await claims(store, 1, { leaseMs: 10 });
    const unknown = await makeUnknown({ store } as never);
    const [live] = await claims(store, 1);
    await clock.advance(1_000);
    expect(await store.claim(stranger())).toEqual(FULL);
    const states = await store.status([lapsed, unknown, live].map((one) => (one as ClaimRequest).key));
    expect(states.map(({ state }) => state)).toEqual(["lapsed", "unknown", "claimed"]);
  });

  it("says so when a completion or an unknown outcome would have to be made again", async () => {
    const { store } = setUp({ maxRecords: 1 });
    await claims(store, 1);
    const gone = claimRequest();
    expect(await store.complete(completion(gone))).toEqual({ kind: "full" });
    const mark = { ...identityOf(gone), attempt: 1, code: undefined };
    await expect(store.markUnknown(mark)).rejects.toMatchObject({ code: "CAPACITY_EXCEEDED" });
  });

  it("forgets the record that was completed first where that was chosen, and says which", async () => {
    const onForgotten = vi.fn();
    const { store } = setUp({ maxRecords: 3, onFull: "forget-oldest-completed", onForgotten });
    expect(store.traits.forgetsOn.eviction).toBe(true);
    expect(store.warnings?.some((warning) => warning.includes("forgets completed keys"))).toBe(true);
    const [first, second, third] = await claims(store, 3);
    for (const request of [second, first, third]) await store.complete(completion(request as ClaimRequest));
    await claims(store, 1);
    expect(await store.find((second as ClaimRequest).key)).toBeUndefined();
    expect(await store.find((first as ClaimRequest).key)).toBeDefined();
    expect(onForgotten).toHaveBeenCalledOnce();
    expect(onForgotten).toHaveBeenCalledWith(
      expect.objectContaining({ key: (second as ClaimRequest).key, state: "completed" }),
    );
  });
});

describe("a scope", () => {
  it("cannot fill the store for the others, and has its places back when its records go", async () => {
    const { clock, store } = setUp({ maxRecords: 10, maxRecordsPerScope: 4 });
    const greedy = newScopeId();
    const [first] = await claims(store, 3, { scopeId: greedy });
    await completions(store, 1, { scopeId: greedy, retentionMs: 50 });
    expect(await store.claim(claimRequest({ scopeId: greedy }))).toEqual(SCOPE_FULL);
    await claims(store, 4, { scopeId: newScopeId() });
    await store.release(releaseOf(first as ClaimRequest));
    await claims(store, 1, { scopeId: greedy });
    expect(await store.claim(claimRequest({ scopeId: greedy }))).toEqual(SCOPE_FULL);
    await clock.advance(50);
    await claims(store, 1, { scopeId: greedy });
    expect(await store.claim(claimRequest({ scopeId: greedy }))).toEqual(SCOPE_FULL);
  });

  it("has half of the store unless told otherwise", async () => {
    const { store } = setUp({ maxRecords: 5, maxRecordsPerScope: undefined });
    const scopeId = newScopeId();
    await claims(store, 3, { scopeId });
    expect(await store.claim(claimRequest({ scopeId }))).toEqual(SCOPE_FULL);
  });

  it("that is full makes room by forgetting its own, where that was chosen", async () => {
    const { store } = setUp({ maxRecords: 8, maxRecordsPerScope: 3, onFull: "forget-oldest-completed" });
    const others = await completions(store, 2);
    const scopeId = newScopeId();
    const [live] = await claims(store, 1, { scopeId });
    const [first, second] = await completions(store, 2, { scopeId });
    await claims(store, 1, { scopeId });
    const asked = [...others, live, first, second].map((one) => (one as ClaimRequest).key);
    const states = (await store.status(asked)).map(({ state }) => state);
    expect(states).toEqual(["completed", "completed", "claimed", "absent", "completed"]);
  });

  it("is refused before anything of others is forgotten", async () => {
    const { store } = setUp({ maxRecords: 4, maxRecordsPerScope: 2, onFull: "forget-oldest-completed" });
    const kept = await completions(store, 2);
    const scopeId = newScopeId();
    await claims(store, 2, { scopeId });
    expect(await store.claim(claimRequest({ scopeId }))).toEqual(SCOPE_FULL);
    const states = await store.status(kept.map(({ key }) => key));
    expect(states.map(({ state }) => state)).toEqual(["completed", "completed"]);
  });
});

describe("a store that is full by bytes", () => {
  it("makes tombstones of the oldest answers, which still say that the work is done", async () => {
    const { store } = setUp({ maxBytes: 3_500 });
    const requests = await completions(store, 5, {}, KILOBYTE);
    const infos = await Promise.all(requests.map(({ key }) => store.find(key)));
    expect(infos.map((info) => info?.tombstone)).toEqual([true, true, false, false, false]);
    const [oldest] = requests;
    const answer = await store.claim(repeatOf(oldest as ClaimRequest));
    expect(answer).toMatchObject({ kind: "completed", outcome: { head: "200", body: undefined } });
  });

  it("refuses new keys once even the heads are too many, but keeps what is completed", async () => {
    const { store } = setUp({ maxBytes: 3_500 });
    const requests = await completions(store, 5, {}, { head: "h".repeat(1_000), body: undefined });
    expect(await store.claim(stranger())).toEqual(FULL);
    const states = await store.status(requests.map(({ key }) => key));
    expect(states.every(({ state }) => state === "completed")).toBe(true);
  });

  it("counts back what goes: expired, forgotten, resolved", async () => {
    const { clock, store } = setUp({ maxBytes: 2_500 });
    for (let round = 0; round < 20; round++) {
      const [request] = await completions(store, 1, { retentionMs: 10 }, KILOBYTE);
      expect(await store.claim(repeatOf(request as ClaimRequest))).toMatchObject({
        outcome: { body: expect.any(Uint8Array) },
      });
      if (round % 2 === 0) {
        await clock.advance(10);
        continue;
      }
      const { version } = (await store.find((request as ClaimRequest).key)) ?? {};
      const resolve = { key: (request as ClaimRequest).key, token: newToken(), evenIfLive: false };
      await store.resolve({ ...resolve, version: version as never, verdict: { kind: "forgotten" } });
    }
  });

  it("lets an answer larger than everything through as a tombstone", async () => {
    const { store } = setUp({ maxBytes: 500 });
    const request = claimRequest();
    await store.claim(request);
    const outcome = { head: "201", body: new Uint8Array(10_000) };
    expect(await store.complete({ ...completion(request), outcome })).toMatchObject({ how: "stored" });
    expect(await store.claim(repeatOf(request))).toMatchObject({ outcome: { head: "201", body: undefined } });
  });

  it("does not spend an empty body, which frees nothing", async () => {
    const { store } = setUp({ maxBytes: 0 });
    const request = claimRequest();
    await store.claim(request);
    await store.complete({ ...completion(request), outcome: { head: "", body: new Uint8Array(0) } });
    expect(await store.find(request.key)).toMatchObject({ tombstone: false, resultBytes: 0 });
  });
});

describe("options", () => {
  it("are judged together, unknown names included", () => {
    const wrong = {
      maxRecords: 0,
      maxRecordsPerScope: -1,
      maxBytes: Number.NaN,
      sweepIntervalMs: -1,
      onFull: "drop",
      onForgotten: "log",
      maxrecords: 7,
    };
    const refused = expect.objectContaining({
      code: "CONFIGURATION_INVALID",
      problems: expect.arrayContaining([
        expect.stringMatching(/^maxRecords must be a whole number from 1 to/),
        expect.stringMatching(/^maxRecordsPerScope/),
        expect.stringMatching(/^maxBytes/),
        expect.stringMatching(/^sweepIntervalMs/),
        expect.stringMatching(/^onFull/),
        expect.stringMatching(/^onForgotten/),
        expect.stringMatching(/^maxrecords is not an option/),
      ]),
    });
    expect(() => memoryStore(wrong as never)).toThrow(refused);
    expect(() => memoryStore({ maxRecords: 2, maxRecordsPerScope: 3 })).toThrow(/from 1 to 2/);
    expect(() => memoryStore({ maxRecords: 2 ** 24 + 1 })).toThrow(/16777216/);
  });
});
