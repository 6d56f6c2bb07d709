/**
 * @module test/servers/support/consumers/crashing
 *
 * A consumer that kills itself where it is told to: nothing it still wanted to say is said. What it did is in a file.
 */
import { appendFileSync } from "node:fs";
import { Redis } from "ioredis";
import { createIdempotency } from "oncekey";
import { fromIoredis, redisStore } from "oncekey/stores/redis";
import { CRASHING_CONSUMER } from "oncekey/testing";

/**
 * @typedef {object} Consumption
 * @property {string} place where the messages are, as the broker's own file understands it
 * @property {import("oncekey").Idempotency} idempotency
 * @property {import("oncekey/testing").ContractConsumer} options
 * @property {(message: import("oncekey/testing").ContractMessage) => import("oncekey").KeyInput | import("oncekey").Missing} key
 * @property {import("oncekey/testing").ContractHandler} handler
 *
 * @typedef {(consumption: Consumption) => Promise<import("oncekey/testing").Consuming>} Consume
 *
 * @typedef {object} CrashSettings
 * @property {string} client the file that exports `consume`
 * @property {import("oncekey/testing").CrashPoint} at
 * @property {string} place
 * @property {string} redisUrl
 * @property {string} prefix
 * @property {string} effects a file, a line for each effect
 */

/** @type {CrashSettings} */
const { client, at, place, redisUrl, prefix, effects } = JSON.parse(process.argv[2] ?? "{}");
/** @type {{ consume: Consume }} */
const { consume } = await import(client);

const redis = new Redis(redisUrl, { lazyConnect: true });
const idempotency = createIdempotency({ store: redisStore(fromIoredis(redis), { prefix }) });
const die = () => process.kill(process.pid, "SIGKILL");

await consume({
  place,
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
