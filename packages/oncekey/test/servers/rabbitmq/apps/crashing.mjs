/**
 * @module test/servers/rabbitmq/apps/crashing
 *
 * A consumer that kills itself where it is told to: nothing it still wanted to say is said. What it did is in a file.
 */
import { appendFileSync } from "node:fs";
import { Redis } from "ioredis";
import { createIdempotency } from "oncekey";
import { fromIoredis, redisStore } from "oncekey/stores/redis";
import { CRASHING_CONSUMER } from "oncekey/testing";
import { clients } from "./clients.mjs";

/**
 * @typedef {object} CrashSettings
 * @property {import("./clients.mjs").ClientName} client
 * @property {import("oncekey/testing").CrashPoint} at
 * @property {string} url
 * @property {string} queue
 * @property {string} redisUrl
 * @property {string} prefix
 * @property {string} effects a file, a line for each effect
 */

/** @type {CrashSettings} */
const { client, at, url, queue, redisUrl, prefix, effects } = JSON.parse(process.argv[2] ?? "{}");

const redis = new Redis(redisUrl, { lazyConnect: true });
const idempotency = createIdempotency({ store: redisStore(fromIoredis(redis), { prefix }) });
const die = () => process.kill(process.pid, "SIGKILL");

await clients[client]({
  url,
  queue,
  idempotency,
  options: {
    ...CRASHING_CONSUMER,
    onVerdict: ({ kind }) => {
      if (kind === "done") die();
    },
  },
  key: ({ key }) => key,
  handler: ({ body }) => {
    if (at === "in-the-handler") die();
    appendFileSync(effects, `${body}\n`);
  },
});
