import { Redis } from "ioredis";
import { fromIoredis } from "oncekey/stores/redis";
import { bindStoreContract } from "oncekey/testing";
import { afterAll, describe, it } from "vitest";
import { redisUrl } from "../support/servers.js";
import { openRedisSubject, REDIS_WAIVERS } from "./redis-subject.js";

const url = await redisUrl();
const redis = new Redis(url);
afterAll(() => redis.disconnect());

bindStoreContract(
  { describe, it },
  {
    open: () =>
      openRedisSubject({
        urls: [url],
        driver: () => fromIoredis(redis),
        set: (name, value) => redis.set(name, value),
      }),
    waivers: REDIS_WAIVERS,
  },
);
