import { Cluster } from "ioredis";
import { fromIoredis } from "oncekey/stores/redis";
import { bindStoreContract } from "oncekey/testing";
import { afterAll, describe, it } from "vitest";
import { redisClusterUrls } from "../support/servers.js";
import { openRedisSubject, REDIS_WAIVERS } from "./redis-subject.js";

const cluster = new Cluster([...(await redisClusterUrls())]);
afterAll(() => cluster.disconnect());

bindStoreContract(
  { describe, it },
  {
    open: () =>
      openRedisSubject({
        driver: () => fromIoredis(cluster),
        set: (name, value) => cluster.set(name, value),
      }),
    waivers: REDIS_WAIVERS,
  },
);
