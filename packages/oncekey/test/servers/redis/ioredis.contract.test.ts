import { Redis } from "ioredis";
import { fromIoredis } from "oncekey/stores/redis";
import { bindStoreContract } from "oncekey/testing";
import { afterAll, describe, it } from "vitest";
import { redisUrl } from "../support/servers.js";
import { openRedisSubject, REDIS_WAIVERS } from "./redis-subject.js";

const redis = new Redis(await redisUrl());
afterAll(() => redis.disconnect());

bindStoreContract(
  { describe, it },
  {
    open: () =>
      openRedisSubject({
        driver: () => fromIoredis(redis),
        set: (name, value) => redis.set(name, value),
      }),
    waivers: REDIS_WAIVERS,
  },
);
