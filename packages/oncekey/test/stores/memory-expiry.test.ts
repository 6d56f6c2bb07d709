/** How expired records leave the memory store: by the calls that come in, by its timer, a million at once. */
import { memoryStore } from "oncekey/stores/memory";
import { manualClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import type { ClaimToken, RecordKey } from "../../src/core/record.js";
import type { Store } from "../../src/core/store.js";
import { claimRequest, newScopeId, repeatOf } from "../../src/testing/requests.js";
import { completion, makeUnknown, outcome } from "../../src/testing/store-contract/scenes.js";

const SECOND = 1_000;

async function complete(store: Store, retentionMs: number) {
  const request = claimRequest({ retentionMs });
  await store.claim(request);
  await store.complete(completion(request));
  return request;
}

describe("expired records", () => {
  it("are gone for everybody at once, and leave with the claims that come in", async () => {
    const clock = manualClock();
    const store = memoryStore({ clock, sweepIntervalMs: 0 });
    const expired = [];
    for (let n = 0; n < 8; n++) expired.push(await complete(store, 10));
    await clock.advance(10);
    expect((await store.status(expired.map(({ key }) => key))).every(({ state }) => state === "absent")).toBe(
      true,
    );
    await store.claim(claimRequest());
    await store.claim(claimRequest());
    expect(await store.purge(100)).toBe(0);
  });

  it("leave with the timer while nobody calls, which then stands still", async () => {
    const clock = manualClock();
    const store = memoryStore({ clock, sweepIntervalMs: SECOND });
    expect(clock.pending()).toBe(0);
    for (let n = 0; n < 2_500; n++) await complete(store, 5 * SECOND);
    await complete(store, 60 * SECOND);
    expect(clock.pending()).toBe(1);
    await clock.advance(7 * SECOND);
    expect(await store.purge(10_000)).toBe(0);
    expect(clock.pending()).toBe(1);
    await clock.advance(60 * SECOND);
    expect(clock.pending()).toBe(0);
  });

  it("leave soon also if they expire before what the timer was set for", async () => {
    const clock = manualClock();
    const store = memoryStore({ clock, sweepIntervalMs: SECOND });
    await complete(store, 3_600 * SECOND);
    await complete(store, 10 * SECOND);
    await clock.advance(12 * SECOND);
    expect(await store.purge(10)).toBe(0);
  });

  it("are removed in slices, between which others get their turn", async () => {
    const clock = manualClock();
    const store = memoryStore({ clock, sweepIntervalMs: SECOND });
    for (let n = 0; n < 2_500; n++) await complete(store, SECOND);
    let left = 0;
    clock.setTimer(() => void store.purge(10_000).then((removed) => (left = removed)), SECOND);
    await clock.advance(SECOND);
    // The timer of the sweep was set first and is due first: it has taken one slice.
    expect(left).toBe(2_250);
  });

  it("are not unknown outcomes, which the timer leaves and does not wait for", async () => {
    const clock = manualClock();
    const store = memoryStore({ clock, sweepIntervalMs: SECOND });
    const unknown = await makeUnknown({ store } as never, { retentionMs: SECOND, leaseMs: SECOND });
    await clock.advance(10 * SECOND);
    expect(clock.pending()).toBe(0);
    expect(await store.find(unknown.key)).toMatchObject({ state: "unknown" });
  });

  it("are not waited for once the store is closed", async () => {
    const clock = manualClock();
    const store = memoryStore({ clock, sweepIntervalMs: SECOND });
    await complete(store, SECOND);
    await store.close();
    expect(clock.pending()).toBe(0);
  });
});

describe("a million records", () => {
  const MILLION = 1_000_000;

  it("fill the store to the last one, expire, and leave it empty", { timeout: 120_000 }, async () => {
    const clock = manualClock();
    const store = memoryStore({
      clock,
      maxRecords: MILLION,
      maxRecordsPerScope: MILLION,
      sweepIntervalMs: 0,
    });
    const template = claimRequest({ retentionMs: SECOND });
    const requestOf = (n: number) => ({
      ...template,
      key: `key-${n.toString(36)}` as RecordKey,
      token: `token-${n.toString(36)}` as ClaimToken,
    });
    const answer = outcome("ok");
    for (let n = 0; n < MILLION; n++) {
      const request = requestOf(n);
      await store.claim(request);
      if (n % 4 === 0) await store.complete({ ...request, attempt: 1, outcome: answer });
    }
    expect(await store.claim(claimRequest({ scopeId: newScopeId() }))).toEqual({
      kind: "full",
      limit: "records",
    });
    expect(await store.claim(repeatOf(requestOf(0)))).toMatchObject({ kind: "completed", outcome: answer });
    expect(await store.claim(repeatOf(requestOf(MILLION - 1)))).toMatchObject({ kind: "in-flight" });
    const page = await store.list({ limit: 1_000, state: "completed" });
    expect(page.records).toHaveLength(1_000);

    await clock.advance(SECOND);
    expect(await store.purge(MILLION)).toBe(MILLION / 4);
    await clock.advance(template.leaseMs);
    let removed = 0;
    for (let slice = 1; slice > 0; removed += slice) slice = await store.purge(10_000);
    expect(removed).toBe((MILLION / 4) * 3);
    expect(await store.list({ limit: 10 })).toEqual({ records: [], cursor: undefined });
    expect(await store.claim(repeatOf(requestOf(0)))).toMatchObject({ kind: "claimed", attempt: 1 });
  });
});
