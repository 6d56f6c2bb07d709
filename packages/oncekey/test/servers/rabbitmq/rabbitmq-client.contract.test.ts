import { describe, it } from "vitest";
import "oncekey/consumers/rabbitmq-client";
import { bindConsumerContract } from "oncekey/testing";
import { rabbitmqUrl, redisUrl } from "../support/servers.js";
import { openRabbitmqSubject } from "./rabbitmq-subject.js";

const [url, redis] = await Promise.all([rabbitmqUrl(), redisUrl()]);

describe("rabbitmq-client", () => {
  bindConsumerContract({ describe, it }, { open: () => openRabbitmqSubject("rabbitmq-client", url, redis) });
});
