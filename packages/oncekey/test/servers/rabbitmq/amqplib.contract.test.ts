import { describe, it } from "vitest";
import "oncekey/consumers/amqplib";
import { bindConsumerContract } from "oncekey/testing";
import { rabbitmqUrl, redisUrl } from "../support/servers.js";
import { openRabbitmqSubject } from "./rabbitmq-subject.js";

const [url, redis] = await Promise.all([rabbitmqUrl(), redisUrl()]);

describe("amqplib, holding what is put back", () => {
  bindConsumerContract({ describe, it }, { open: () => openRabbitmqSubject("amqplib", url, redis) });
});

describe("amqplib, with queues for what is put back and for dead letters", () => {
  bindConsumerContract(
    { describe, it },
    { open: () => openRabbitmqSubject("amqplib with queues", url, redis) },
  );
});
