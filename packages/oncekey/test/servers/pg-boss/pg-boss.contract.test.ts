import { describe, it } from "vitest";
import "oncekey/consumers/pg-boss";
import { bindConsumerContract } from "oncekey/testing";
import { postgresUrl, redisUrl } from "../support/servers.js";
import { openPgBossSubject } from "./pg-boss-subject.js";

const [url, redis] = await Promise.all([postgresUrl(), redisUrl()]);

describe("pg-boss", () => {
  bindConsumerContract({ describe, it }, { open: () => openPgBossSubject(url, redis) });
});
