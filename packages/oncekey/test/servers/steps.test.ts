/**
 * Steps on stores of servers, in processes that are killed.
 */
import { afterAll, describe } from "vitest";
import { stepSuite } from "../support/step-suite.js";
import { createPostgresDatabase } from "./support/databases.js";
import { postgresUrl, redisUrl } from "./support/servers.js";

const [postgres, redis] = await Promise.all([postgresUrl().then(createPostgresDatabase), redisUrl()]);
afterAll(() => postgres.drop());

describe.concurrent("Postgres", () => {
  stepSuite("postgres", postgres.url, ["at-least-once", "exactly-once"]);
});

describe.concurrent("Redis", () => {
  stepSuite("redis", redis, ["at-least-once"]);
});
