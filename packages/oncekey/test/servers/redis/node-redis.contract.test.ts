import { fromNodeRedis } from "oncekey/stores/redis";
import { bindStoreContract } from "oncekey/testing";
import { createClient } from "redis";
import { afterAll, describe, it } from "vitest";
import { redisUrl } from "../support/servers.js";
import { openRedisSubject, REDIS_WAIVERS } from "./redis-subject.js";

const url = await redisUrl();
const client = await createClient({ url }).connect();
afterAll(() => client.destroy());

bindStoreContract(
  { describe, it },
  {
    open: () =>
      openRedisSubject({
        urls: [url],
        driver: () => fromNodeRedis(client),
        set: (name, value) => client.set(name, value),
      }),
    waivers: REDIS_WAIVERS,
  },
);
