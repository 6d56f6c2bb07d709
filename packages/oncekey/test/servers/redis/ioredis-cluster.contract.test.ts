import { Cluster } from "ioredis";
import { fromIoredis } from "oncekey/stores/redis";
import { bindStoreContract } from "oncekey/testing";
import { afterAll, describe, it } from "vitest";
import { redisClusterUrls } from "../support/servers.js";
import { openRedisSubject, REDIS_WAIVERS } from "./redis-subject.js";

const urls = await redisClusterUrls();
const cluster = new Cluster([...urls]);
afterAll(() => cluster.disconnect());

bindStoreContract(
  { describe, it },
  {
    open: () =>
      openRedisSubject({
        urls,
        driver: () => fromIoredis(cluster),
        set: (name, value) => cluster.set(name, value),
      }),
    waivers: REDIS_WAIVERS,
  },
);
