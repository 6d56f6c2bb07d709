import { fromNodeRedis } from "oncekey/stores/redis";
import { bindStoreContract } from "oncekey/testing";
import { createCluster } from "redis";
import { afterAll, describe, it } from "vitest";
import { redisClusterUrls } from "../support/servers.js";
import { openRedisSubject, REDIS_WAIVERS } from "./redis-subject.js";

const urls = await redisClusterUrls();
const rootNodes = urls.map((url) => ({ url }));
const cluster = await createCluster({ rootNodes }).connect();
afterAll(() => cluster.destroy());

bindStoreContract(
  { describe, it },
  {
    open: () =>
      openRedisSubject({
        urls,
        driver: () => fromNodeRedis(cluster),
        set: (name, value) => cluster.set(name, value),
      }),
    waivers: REDIS_WAIVERS,
  },
);
