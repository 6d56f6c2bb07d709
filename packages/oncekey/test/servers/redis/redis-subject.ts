/**
 * @module
 * How the contract of stores opens Redis, with whichever client.
 */
import { Redis } from "ioredis";
import type { RecordKey } from "oncekey";
import { type RedisDriver, redisStore } from "oncekey/stores/redis";
import type { StoreContractSetup, StoreSubject } from "oncekey/testing";
import { uniquePrefix } from "../support/servers.js";

export interface RedisClient {
  /** The server, or the nodes of the cluster. */
  readonly urls: readonly string[];
  readonly driver: () => RedisDriver;
  /** Through a connection that is not the store's. */
  readonly set: (name: string, value: string) => Promise<unknown>;
}

/** Opens a store whose keys begin with a name of their own; damage goes through a connection that is not the store's. */
export async function openRedisSubject({ urls, driver, set }: RedisClient): Promise<StoreSubject<never>> {
  const prefix = `${uniquePrefix()}:`;
  const open = async () => {
    // Patient, and connected before the case begins: other tests keep the machine busy meanwhile.
    const store = redisStore(driver(), { prefix, answerTimeoutMs: 15_000 });
    await store.ready();
    return store;
  };
  return {
    store: await open(),
    another: open,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    damage: async (key: RecordKey) =>
      void (await set(prefix + key, "O9 what a later version may have written")),
    dispose: async () => void (await Promise.all(urls.map((url) => removeAll(url, prefix)))),
  };
}

/** So that the next case does not walk over what this one has left. */
async function removeAll(url: string, prefix: string): Promise<void> {
  const redis = new Redis(url);
  for await (const names of redis.scanStream({ match: `${prefix}*`, count: 1_000 })) {
    await Promise.all((names as string[]).map((name) => redis.del(name)));
  }
  redis.disconnect();
}

export const REDIS_WAIVERS: NonNullable<StoreContractSetup["waivers"]> = {
  transactions: "Redis has none that the rows of another database could share.",
  joining: "Redis has none that the rows of another database could share.",
  pinning: "Redis has none that the rows of another database could share.",
  "a purge takes what has expired, in batches as small as asked":
    "Redis removes what has expired by itself, so there is nothing to count.",
};
