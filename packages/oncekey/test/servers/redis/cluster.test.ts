import { Cluster } from "ioredis";
import { createIdempotency, isOncekeyError } from "oncekey";
import { fromIoredis, fromNodeRedis, type RedisDriver, redisStore } from "oncekey/stores/redis";
import { createCluster } from "redis";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { slotOf } from "../../../src/stores/redis/cluster-slot.js";
import { ownServer, uniquePrefix } from "../support/servers.js";
import { claimOf, completionOf, outsider, repeatOf, until } from "./fixture.js";

const cluster = await ownServer("redis-cluster");
afterAll(cluster.close);

const drivers: Record<string, () => RedisDriver> = {
  ioredis: () => fromIoredis(new Cluster([...cluster.urls], { lazyConnect: true })),
  "node-redis": () => fromNodeRedis(createCluster({ rootNodes: cluster.urls.map((url) => ({ url })) })),
};

describe.each(Object.keys(drivers))("a cluster, with %s", (name) => {
  function open(options: Parameters<typeof redisStore>[1] = {}) {
    const driver = drivers[name]?.();
    if (driver === undefined) throw new Error("no driver");
    const store = redisStore(driver, { prefix: `${uniquePrefix()}:`, answerTimeoutMs: 5_000, ...options });
    onTestFinished(() => store.close());
    return store;
  }

  it("keys are on all nodes, one slot each, and scripts survive SCRIPT FLUSH on all of them", async () => {
    const store = open({ prefix: "spread:" });
    const claims = Array.from({ length: 60 }, () => claimOf());
    await Promise.all(claims.map(store.claim));
    await Promise.all(cluster.urls.map((url) => outsider(url).script("FLUSH")));
    await Promise.all(claims.map((claim) => store.complete(completionOf(claim))));
    const sizes = await Promise.all(cluster.urls.map((url) => outsider(url).dbsize()));
    for (const size of sizes) expect(size).toBeGreaterThan(0);
    for (const claim of claims)
      expect(await store.claim(repeatOf(claim))).toMatchObject({ kind: "completed" });
    const [first] = claims;
    const slot = await outsider(cluster.url).cluster("KEYSLOT", `spread:${first?.key}`);
    expect(slot).toBe(slotOf(`spread:${first?.key}`));
  });

  it("what no replica confirms is not acknowledged", async () => {
    const store = open({ durability: { wait: { replicas: 1, timeoutMs: 50 } } });
    await store.ready();
    for (let count = 0; count < 6; count += 1) {
      await expect(store.claim(claimOf())).rejects.toMatchObject({
        code: "STORE_UNAVAILABLE",
        message: expect.stringContaining("WAIT was confirmed by 0"),
      });
    }
  });

  it("a node that is away takes only its own keys along, and comes back without a claim that nobody owns", async () => {
    const store = open({ answerTimeoutMs: 400 });
    await until(
      () =>
        store.ready().then(
          () => true,
          () => false,
        ),
      "the connections",
    );
    const idempotency = createIdempotency({
      store,
      scope: "global",
      leaseMs: 60_000,
      storeTimeoutMs: 600,
    });
    const codes = new Map<string, number>();
    let going = true;
    let count = 0;
    const caller = async (): Promise<void> => {
      while (going) {
        count += 1;
        const options = { operation: "charge", key: `k${count}`, fingerprint: "off" } as const;
        const code = await idempotency
          .run(options, () => "done")
          .catch((error: unknown) => (isOncekeyError(error) ? error.code : String(error)));
        codes.set(code, (codes.get(code) ?? 0) + 1);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    const callers = Promise.all(Array.from({ length: 30 }, caller));
    const counted = (code: string) => codes.get(code) ?? 0;
    await until(() => counted("done") > 100, "work before");
    await cluster.nodes[1]?.pause();
    await until(() => counted("STORE_UNAVAILABLE") > 30, "refusals", 15_000);
    await cluster.nodes[1]?.resume();
    const refused = counted("STORE_UNAVAILABLE");
    const done = counted("done");
    await until(() => counted("done") > done + 200, "work afterwards", 15_000);
    going = false;
    await callers;
    await idempotency.close({ graceMs: 15_000 });
    expect([...codes.keys()].sort(), `${refused}`).toEqual(["STORE_UNAVAILABLE", "done"]);
    await until(async () => {
      const page = await store.list({ state: "claimed", limit: 1_000 }).catch(() => undefined);
      return page?.records.length === 0;
    }, "no claim is left");
  }, 60_000);
});
