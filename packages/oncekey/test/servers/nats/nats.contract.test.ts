import { describe, it } from "vitest";
import "oncekey/consumers/nats";
import { bindConsumerContract } from "oncekey/testing";
import { natsUrl, redisUrl } from "../support/servers.js";
import { openNatsSubject } from "./nats-subject.js";

const [url, redis] = await Promise.all([natsUrl(), redisUrl()]);

describe("NATS JetStream", () => {
  bindConsumerContract({ describe, it }, { open: () => openNatsSubject(url, redis) });
});
