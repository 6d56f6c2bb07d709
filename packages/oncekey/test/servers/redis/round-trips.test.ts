import { describe, expect, it, onTestFinished } from "vitest";
import { faultProxy } from "../support/fault-proxy.js";
import { redisUrl } from "../support/servers.js";
import { claimOf, completionOf, FAMILIES, openStore, outsider, repeatOf } from "./fixture.js";

const url = await redisUrl();

describe.each(FAMILIES)("on the wire, with %s", (family) => {
  async function setUp() {
    const proxy = await faultProxy(url);
    onTestFinished(proxy.close);
    // So long that nobody pings meanwhile.
    const store = openStore(family, proxy.url, { answerTimeoutMs: 60_000 });
    await store.ready();
    // Each script goes once by its text.
    const warm = claimOf();
    await store.claim(warm);
    await store.claim(warm);
    await store.extend(warm);
    await store.complete(completionOf(warm));
    await store.claim(repeatOf(warm));
    const released = claimOf();
    await store.claim(released);
    const release = { started: true, keepAttempts: false, code: undefined } as const;
    await store.release({ ...released, ...release });
    async function tripsOf<T>(call: () => Promise<T>): Promise<{ answer: T; trips: number }> {
      proxy.resetCounts();
      const answer = await call();
      return { answer, trips: proxy.counts().roundTrips };
    }
    return { store, tripsOf, release };
  }

  it("one round trip to claim, to renew, to complete, to replay, to release and to refuse another request", async () => {
    const { store, tripsOf, release } = await setUp();
    const [claim, other] = [claimOf(), claimOf()];
    const claimed = { kind: "claimed", attempt: 1, takeover: false, compared: true };
    expect(await tripsOf(() => store.claim(claim))).toEqual({ answer: claimed, trips: 1 });
    expect(await tripsOf(() => store.extend(claim))).toEqual({ answer: { kind: "extended" }, trips: 1 });
    const completed = { kind: "completed", how: "stored" };
    expect(await tripsOf(() => store.complete(completionOf(claim)))).toEqual({ answer: completed, trips: 1 });
    const replay = await tripsOf(() => store.claim(repeatOf(claim)));
    expect(replay).toMatchObject({ answer: { kind: "completed" }, trips: 1 });
    const mismatch = await tripsOf(() => store.claim({ ...repeatOf(claim), fingerprint: other.fingerprint }));
    expect(mismatch).toEqual({ answer: { kind: "mismatch", state: "completed" }, trips: 1 });
    await store.claim(other);
    const released = await tripsOf(() => store.release({ ...other, ...release }));
    expect(released).toEqual({ answer: { kind: "released" }, trips: 1 });
  });

  it("two to learn who is in flight, three to take over", async () => {
    const { store, tripsOf } = await setUp();
    const claim = claimOf(undefined, { leaseMs: 50 });
    await store.claim({ ...claim, leaseMs: 30_000 });
    const held = await tripsOf(() => store.claim(repeatOf(claim)));
    expect(held).toMatchObject({ answer: { kind: "in-flight", holder: claim.token }, trips: 2 });
    await store.extend({ ...claim, leaseMs: 50 });
    await new Promise((resolve) => setTimeout(resolve, 80));
    const taken = await tripsOf(() => store.claim(repeatOf(claim)));
    expect(taken).toMatchObject({ answer: { kind: "claimed", attempt: 2, takeover: true }, trips: 3 });
  });

  it("one for the states of two hundred keys", async () => {
    const { store, tripsOf } = await setUp();
    await store.status([claimOf().key]);
    const keys = Array.from({ length: 200 }, () => claimOf().key);
    const { answer, trips } = await tripsOf(() => store.status(keys));
    expect([answer.length, trips]).toEqual([200, 1]);
  });

  it("scripts survive SCRIPT FLUSH, under way and after it", async () => {
    const { store, tripsOf } = await setUp();
    const claims = Array.from({ length: 50 }, () => claimOf());
    await Promise.all(claims.map(store.claim));
    const flushing = outsider(url).script("FLUSH");
    const answers = await Promise.all(claims.map((claim) => store.complete(completionOf(claim))));
    await flushing;
    expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(["completed"]));
    await outsider(url).script("FLUSH");
    const claim = claimOf();
    await store.claim(claim);
    const first = await tripsOf(() => store.complete(completionOf(claim)));
    expect(first).toEqual({ answer: { kind: "completed", how: "stored" }, trips: 2 });
    expect((await tripsOf(() => store.complete(completionOf(claim)))).trips).toBe(1);
  });
});
