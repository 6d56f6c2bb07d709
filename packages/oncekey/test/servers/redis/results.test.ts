import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { redisUrl } from "../support/servers.js";
import { claimOf, completionOf, FAMILIES, openStore, outsider, repeatOf } from "./fixture.js";

const url = await redisUrl();

describe.each(FAMILIES)("with %s", (family) => {
  it.each([
    ["every byte", Uint8Array.from({ length: 256 }, (_, byte) => byte)],
    ["an empty body", new Uint8Array()],
    ["no body", undefined],
    ["what is no UTF-8", Uint8Array.of(0xff, 0xfe, 0x00, 0xc3, 0x28)],
    ["line ends", new TextEncoder().encode("\r\n$5\r\nhello\r\n")],
    ["a part of a larger buffer", randomBytes(64).subarray(10, 20)],
    ["one megabyte", randomBytes(1024 * 1024)],
  ])("%s is replayed as it was", async (_name, body) => {
    const store = openStore(family, url);
    const claim = claimOf(undefined, { label: "größe", operation: "POST /größe 🎉" });
    const outcome = { head: '[201,[["location","/größe/\u2028"]]]', body };
    await store.claim(claim);
    await store.complete(completionOf(claim, outcome));
    const replay = await store.claim(repeatOf(claim));
    const stored = replay.kind === "completed" ? replay.outcome : undefined;
    expect(stored?.head).toBe(outcome.head);
    expect(stored?.body === undefined).toBe(body === undefined);
    // Not by toEqual, which takes seconds for a megabyte.
    expect(Buffer.compare(stored?.body ?? Buffer.of(), body ?? Buffer.of())).toBe(0);
    expect(await store.find(claim.key)).toMatchObject({
      label: "größe",
      tombstone: body === undefined,
      resultBytes: body?.length ?? 0,
    });
  });

  it("somebody else's value under our key is unreadable, whatever type it has, and stays", async () => {
    const store = openStore(family, url, { prefix: "shared:" });
    const redis = outsider(url);
    const made = {
      hash: (name: string) => redis.hset(name, "a", "1"),
      list: (name: string) => redis.rpush(name, "1"),
      text: (name: string) => redis.set(name, "somebody's"),
      "empty text": (name: string) => redis.set(name, ""),
    };
    for (const [type, make] of Object.entries(made)) {
      const claim = claimOf(type);
      const name = `shared:${claim.key}`;
      await make(name);
      const before = await redis.dump(name);
      const unreadable = { code: "RECORD_UNREADABLE" };
      await expect(store.claim(claim), type).rejects.toMatchObject(unreadable);
      await expect(store.complete(completionOf(claim)), type).rejects.toMatchObject(unreadable);
      await expect(store.extend(claim), type).rejects.toMatchObject(unreadable);
      expect(await redis.dump(name), type).toEqual(before);
      await redis.del(name);
    }
  });

  it("a record lives for its lease and its retention, an unknown one for ever", async () => {
    const store = openStore(family, url, { prefix: "times:" });
    const redis = outsider(url);
    const claim = claimOf(undefined, { leaseMs: 20_000, retentionMs: 60_000 });
    const name = `times:${claim.key}`;
    const expiry = async () => Math.round((await redis.pttl(name)) / 1_000);
    await store.claim(claim);
    expect(await expiry()).toBe(80);
    await store.extend({ ...claim, leaseMs: 40_000 });
    expect(await expiry()).toBe(100);
    await store.markUnknown({ ...claim, attempt: 1, code: undefined });
    expect(await redis.pttl(name)).toBe(-1);
    await store.complete(completionOf(claim));
    expect(await expiry()).toBe(60);
  });

  it("a claim whose expiry somebody took away is unreadable, and stays", async () => {
    const store = openStore(family, url, { prefix: "persisted:" });
    const redis = outsider(url);
    const claim = claimOf();
    await store.claim(claim);
    await redis.persist(`persisted:${claim.key}`);
    const before = await redis.get(`persisted:${claim.key}`);
    const unreadable = { code: "RECORD_UNREADABLE" };
    await expect(store.complete(completionOf(claim))).rejects.toMatchObject(unreadable);
    await expect(store.extend(claim)).rejects.toMatchObject(unreadable);
    await expect(store.claim(repeatOf(claim))).rejects.toMatchObject(unreadable);
    expect(await redis.get(`persisted:${claim.key}`)).toBe(before);
  });

  it("the client's own prefix stands before the store's", async () => {
    const { fromIoredis, fromNodeRedis, redisStore } = await import("oncekey/stores/redis");
    const { Redis } = await import("ioredis");
    const { createClient } = await import("redis");
    const driver =
      family === "ioredis"
        ? fromIoredis(new Redis(url, { lazyConnect: true, keyPrefix: "tenant:" }))
        : fromNodeRedis(createClient({ url, keyPrefix: "tenant:" }));
    const store = redisStore(driver, { prefix: "own:" });
    const claim = claimOf();
    await store.claim(claim);
    await store.complete(completionOf(claim));
    expect(await outsider(url).exists(`tenant:own:${claim.key}`)).toBe(1);
    expect(await store.claim(repeatOf(claim))).toMatchObject({ kind: "completed" });
    await store.close();
  });
});
