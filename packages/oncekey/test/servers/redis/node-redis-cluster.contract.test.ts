import { fromNodeRedis } from "oncekey/stores/redis";
import { bindStoreContract } from "oncekey/testing";
import { createCluster } from "redis";
import { afterAll, describe, it } from "vitest";
import { redisClusterUrls } from "../support/servers.js";
import { openRedisSubject, REDIS_WAIVERS } from "./redis-subject.js";

const rootNodes = (await redisClusterUrls()).map((url) => ({ url }));
const cluster = await createCluster({ rootNodes }).connect();
afterAll(() => cluster.destroy());

bindStoreContract(
  { describe, it },
  {
    open: () =>
      openRedisSubject({
        driver: () => fromNodeRedis(cluster),
        set: (name, value) => cluster.set(name, value),
      }),
    waivers: REDIS_WAIVERS,
  },
);
