import { readFile } from "node:fs/promises";
import { createIdempotency, type StoreNotice } from "oncekey";
import type { RedisStore } from "oncekey/stores/redis";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { ownServer } from "../support/servers.js";
import { claimOf, completionOf, FAMILIES, openStore, outsider, repeatOf, until } from "./fixture.js";

const server = await ownServer("redis");
afterAll(server.close);

/** Settings for one test. */
async function set(settings: Record<string, string>): Promise<void> {
  const redis = outsider(server.url);
  for (const [name, value] of Object.entries(settings)) {
    const [, before = ""] = (await redis.config("GET", name)) as string[];
    await redis.config("SET", name, value);
    onTestFinished(async () => void (await outsider(server.url).config("SET", name, before)));
  }
}

function noticesOf(store: RedisStore): StoreNotice[] {
  const notices: StoreNotice[] = [];
  store.notices?.((notice) => notices.push(notice));
  return notices;
}

const WORST = { processCrash: true, powerLoss: true, failover: true, eviction: true };
const atMostOnce = (store: RedisStore) => () => createIdempotency({ store, guarantee: "at-most-once" });

describe.each(FAMILIES)("what the server keeps, with %s", (family) => {
  it("is read from it, and until then taken for the worst", async () => {
    await set({ appendonly: "yes", appendfsync: "always" });
    const store = openStore(family, server.url);
    expect(store.traits.forgetsOn).toEqual(WORST);
    expect(atMostOnce(store)).toThrow(/at-most-once/);
    await store.ready();
    const nothing = { processCrash: false, powerLoss: false, failover: false, eviction: false };
    expect(store.traits).toEqual({ forgetsOn: nothing, reach: "network" });
    expect(noticesOf(store)).toEqual([]);
    expect(atMostOnce(store)).not.toThrow();
  });

  it.each([
    ["everysec", { processCrash: false, powerLoss: true }],
    ["no", { processCrash: false, powerLoss: true }],
  ])("appendfsync %s survives a crash, not a power cut", async (appendfsync, forgets) => {
    await set({ appendonly: "yes", appendfsync });
    const store = openStore(family, server.url);
    await store.ready();
    expect(store.traits.forgetsOn).toMatchObject(forgets);
    expect(noticesOf(store)).toEqual([
      { kind: "warning", text: expect.stringContaining(`appendfsync is ${appendfsync}`) },
    ]);
    expect(atMostOnce(store)).toThrow(/at-most-once/);
  });

  it("without a file a restart forgets", async () => {
    const store = openStore(family, server.url);
    await store.ready();
    expect(store.traits.forgetsOn).toMatchObject({ processCrash: true, powerLoss: true });
    expect(noticesOf(store)[0]?.text).toMatch(/append-only file/);
  });

  it.each(["allkeys-lru", "volatile-ttl"])(
    "%s can evict live claims: warned of, refused under at-most-once",
    async (policy) => {
      await set({ appendonly: "yes", appendfsync: "always", maxmemory: "1gb", "maxmemory-policy": policy });
      const store = openStore(family, server.url);
      await store.ready();
      expect(store.traits.forgetsOn.eviction).toBe(true);
      expect(noticesOf(store)).toEqual([
        { kind: "warning", text: expect.stringContaining(`maxmemory-policy is ${policy}`) },
      ]);
      expect(atMostOnce(store)).toThrow(/at-most-once/);
      const told = { store, guarantee: "at-most-once", acceptsLostWrites: true } as const;
      expect(() => createIdempotency(told)).not.toThrow();
    },
  );

  it("what may not be asked is said, and taken for the worst", async () => {
    const redis = outsider(server.url);
    await redis.acl("SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-config", "-info");
    const url = server.url.replace("redis://", "redis://app:secret@");
    const store = openStore(family, url);
    // ioredis and node-redis ask INFO or not by their own settings; the store needs neither.
    await store.claim(claimOf()).catch(() => undefined);
    await until(() => noticesOf(store).length === 2, "both warnings");
    expect(noticesOf(store).map(({ text }) => text)).toEqual([
      expect.stringContaining("INFO may not be asked"),
      expect.stringContaining("CONFIG may not be asked"),
    ]);
    expect(store.traits.forgetsOn).toMatchObject({ processCrash: true, powerLoss: true, eviction: true });
  });
});

describe.each(FAMILIES)("a server that refuses, with %s", (family) => {
  it("without memory: full, nothing is lost, and completions are told so", async () => {
    const store = openStore(family, server.url);
    const [running, next] = [claimOf(), claimOf()];
    await store.claim(running);
    await set({ maxmemory: "1" });
    expect(await store.claim(next)).toEqual({ kind: "full", limit: "records" });
    expect(await store.complete(completionOf(running))).toEqual({ kind: "full" });
    expect(await store.claim(repeatOf(running))).toMatchObject({ kind: "full" });
    expect(await store.find(running.key)).toMatchObject({ state: "claimed", holder: running.token });
    await outsider(server.url).config("SET", "maxmemory", "0");
    expect(await store.complete(completionOf(running))).toEqual({ kind: "completed", how: "stored" });
  });

  it("as a replica: refused, and the record stays", async () => {
    const store = openStore(family, server.url);
    const claim = claimOf();
    await store.claim(claim);
    const redis = outsider(server.url);
    await set({ "replica-serve-stale-data": "yes" });
    await redis.replicaof("127.0.0.1", 1);
    await expect(store.claim(claimOf())).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: expect.stringContaining("replica"),
    });
    await redis.replicaof("NO", "ONE");
    await until(
      () =>
        store.complete(completionOf(claim)).then(
          ({ kind }) => kind === "completed",
          () => false,
        ),
      "the completion",
    );
  });

  it("with too few replicas: refused, in words", async () => {
    const store = openStore(family, server.url);
    await store.ready();
    await set({ "min-replicas-to-write": "1" });
    await expect(store.claim(claimOf())).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      retryAfterMs: 5_000,
      message: expect.stringContaining("min-replicas-to-write"),
    });
  });

  it("a user without the right: refused, in words", async () => {
    const redis = outsider(server.url);
    await redis.acl("SETUSER", "reader", "on", ">secret", "~*", "&*", "+@all", "-set");
    const store = openStore(family, server.url.replace("redis://", "redis://reader:secret@"));
    await expect(store.claim(claimOf())).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: expect.stringContaining("may not do this"),
    });
  });
});

describe.each(FAMILIES)("a user with the rights that the documentation names, with %s", (family) => {
  it("can do everything", async () => {
    const redis = outsider(server.url);
    const prefix = `least-${family}:`;
    const rights = (await readFile(new URL("../../../../../docs/stores/redis.md", import.meta.url), "utf8"))
      .match(/^ACL SETUSER .*$/m)?.[0]
      .replace(/^ACL SETUSER \S+ on >\S+ /, "")
      .replaceAll("oncekey:*", `${prefix}*`)
      .split(" ");
    await redis.acl("SETUSER", `least-${family}`, "on", ">secret", ...(rights ?? []));
    const store = openStore(family, server.url.replace("redis://", `redis://least-${family}:secret@`), {
      prefix,
    });
    await store.ready();
    expect(noticesOf(store).filter(({ text }) => text.includes("may not be asked"))).toEqual([]);
    const [claim, unknown] = [claimOf(), claimOf()];
    let woken = 0;
    store.watch?.(claim.key, () => {
      woken += 1;
    });
    await store.claim(claim);
    await store.extend(claim);
    await until(async () => (await redis.pubsub("SHARDNUMSUB", prefix + claim.key))[1] === 1, "listening");
    await store.complete(completionOf(claim));
    await until(() => woken > 0, "the wake-up");
    await store.claim(unknown);
    await store.markUnknown({ ...unknown, attempt: 1, code: undefined });
    await store.release({ ...unknown, started: true, keepAttempts: false, code: undefined });
    expect(await store.status([claim.key, unknown.key])).toMatchObject([
      { state: "completed" },
      { state: "absent" },
    ]);
    expect((await store.list({ limit: 10 })).records).toHaveLength(1);
    expect(await store.find(claim.key)).toMatchObject({ state: "completed" });
  });
});
