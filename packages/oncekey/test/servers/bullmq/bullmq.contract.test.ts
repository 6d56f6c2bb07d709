import { describe, it } from "vitest";
import "oncekey/consumers/bullmq";
import { bindConsumerContract } from "oncekey/testing";
import { redisUrl } from "../support/servers.js";
import { openBullmqSubject } from "./bullmq-subject.js";

const url = await redisUrl();

describe("BullMQ", () => {
  bindConsumerContract({ describe, it }, { open: () => openBullmqSubject(url) });
});
