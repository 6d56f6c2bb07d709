import { afterAll, describe } from "vitest";
import { redisUrl } from "../support/servers.js";
import { clockSuite } from "./clocks.js";
import { crashSuite } from "./crashes.js";
import { durableRedis, outageSuite } from "./outages.js";
import { standstillSuite } from "./standstills.js";
import { stormSuite } from "./storms.js";
import { sharedSubject } from "./subject.js";

const subject = await sharedSubject("redis", await redisUrl(), ["at-least-once", "at-most-once"]);
afterAll(subject.close);

describe.concurrent("Redis", () => {
  crashSuite(subject);
  standstillSuite(subject);
  stormSuite(subject);
  clockSuite(subject);
  outageSuite(subject, durableRedis);
});
