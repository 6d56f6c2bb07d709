import { createHash } from "node:crypto";
import { Cluster, Redis } from "ioredis";
import type { ListRequest, RecordKey, ScopeId } from "oncekey";
import { fromIoredis, fromNodeRedis, type RedisDriver, redisStore } from "oncekey/stores/redis";
import { createClient, createCluster } from "redis";
import { describe, expect, it, onTestFinished } from "vitest";
import { redisClusterUrls, redisUrl, uniquePrefix } from "../support/servers.js";
import { claimOf, completionOf, outsider } from "./fixture.js";

const url = await redisUrl();
const urls = await redisClusterUrls();

const drivers: Record<string, () => RedisDriver> = {
  ioredis: () => fromIoredis(new Redis(url, { lazyConnect: true })),
  "node-redis": () => fromNodeRedis(createClient({ url })),
  "a cluster of ioredis": () => fromIoredis(new Cluster([...urls], { lazyConnect: true })),
  "a cluster of node-redis": () =>
    fromNodeRedis(createCluster({ rootNodes: urls.map((each) => ({ url: each })) })),
};

describe.each(Object.keys(drivers))("listing with %s", (name) => {
  function open(prefix = `${uniquePrefix()}:`) {
    const driver = drivers[name]?.();
    if (driver === undefined) throw new Error("no driver");
    const store = redisStore(driver, { prefix });
    onTestFinished(() => store.close());
    async function all(request: Partial<ListRequest>) {
      const keys: string[] = [];
      const unreadable: string[] = [];
      let cursor: string | undefined;
      let pages = 0;
      do {
        const page = await store.list({ limit: 100, ...request, cursor });
        keys.push(...page.records.map(({ key }) => key));
        unreadable.push(...(page.unreadable ?? []));
        cursor = page.cursor;
        pages += 1;
      } while (cursor !== undefined);
      return { keys, unreadable, pages };
    }
    return { store, all };
  }

  it("thousands of records, each once, in pages of any size, and none of another prefix", async () => {
    const { store, all } = open();
    const { store: stranger } = open();
    const claims = Array.from({ length: 1_500 }, () => claimOf());
    await Promise.all([...claims.map(store.claim), ...claims.slice(0, 100).map(stranger.claim)]);
    await Promise.all(claims.slice(0, 1_480).map((claim) => store.complete(completionOf(claim))));
    const keys = claims.map(({ key }) => key).sort();
    for (const limit of [7, 100, 1_000]) {
      const listed = await all({ limit });
      expect(listed.keys.toSorted()).toEqual(keys);
      expect(listed.pages).toBeGreaterThanOrEqual(1_500 / limit);
    }
    const stuck = await all({ state: "claimed" });
    expect(stuck.keys.toSorted()).toEqual(
      keys.filter((key) => claims.slice(1_480).some((one) => one.key === key)),
    );
    expect((await all({ scopeId: "nobody" as ScopeId })).keys).toEqual([]);
  });

  it("pages of one, though the server keeps several keys at one place", async () => {
    const { store, all } = open();
    const claims = Array.from({ length: 60 }, () => claimOf());
    await Promise.all(claims.map(store.claim));
    expect((await all({ limit: 1 })).keys.toSorted()).toEqual(claims.map(({ key }) => key).sort());
  });
});

it("what cannot be read is on the page by its key, and hides nothing", async () => {
  const prefix = "odd*[x]:";
  const store = redisStore(fromIoredis(new Redis(url, { lazyConnect: true })), { prefix });
  onTestFinished(() => store.close());
  const [whole, damaged] = [claimOf(), createHash("sha256").update("damaged").digest("base64url")];
  await store.claim(whole);
  const redis = outsider(url);
  await redis.set(prefix + damaged, "O9 of a later version");
  await redis.set("oddly[x]:not ours", "O1C");
  await redis.hset(`${prefix}a hash`, "a", "1");
  const page = await store.list({ limit: 10 });
  expect([page.records.map(({ key }) => key), page.unreadable, page.cursor]).toEqual([
    [whole.key],
    [damaged],
    undefined,
  ]);
  await expect(store.find(damaged as RecordKey)).rejects.toMatchObject({ code: "RECORD_UNREADABLE" });
});

it("an empty text is something that cannot be read, to whoever looks and to whoever claims", async () => {
  const prefix = `${uniquePrefix()}:`;
  const store = redisStore(fromIoredis(new Redis(url, { lazyConnect: true })), { prefix });
  onTestFinished(() => store.close());
  const claim = claimOf();
  await outsider(url).set(prefix + claim.key, "");
  await expect(store.claim(claim)).rejects.toMatchObject({ code: "RECORD_UNREADABLE" });
  await expect(store.find(claim.key)).rejects.toMatchObject({ code: "RECORD_UNREADABLE" });
  expect((await store.list({ limit: 10 })).unreadable).toEqual([claim.key]);
  await store.discard?.(claim.key);
  expect(await store.find(claim.key)).toBeUndefined();
});

it("paging ends, whatever others have called their keys", async () => {
  const prefix = `${uniquePrefix()}:`;
  const store = redisStore(fromIoredis(new Redis(url, { lazyConnect: true })), { prefix });
  onTestFinished(() => store.close());
  const redis = outsider(url);
  const names = Array.from({ length: 40 }, (_, n) => `a.${n}."b\\.c`);
  for (const name of names) await redis.set(prefix + name, "x");
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.list({ limit: 1, cursor });
    seen.push(...(page.unreadable ?? []));
    cursor = page.cursor;
  } while (cursor !== undefined && seen.length < 100);
  expect(seen.toSorted()).toEqual(names.toSorted());
});
