/**
 * What each subpath costs whoever imports it: minified, with all that it brings along, compressed with Brotli.
 *
 * A budget is what was measured plus about a tenth. Raise one only with a sentence in the commit on what the bytes buy.
 */
import { readFileSync } from "node:fs";

const manifest = JSON.parse(readFileSync(new URL("packages/oncekey/package.json", import.meta.url), "utf8"));

/** Subpath to kilobytes. */
const budgets = {
  ".": 30,
  "./consumers": 15,
  "./consumers/amqplib": 17,
  "./consumers/bullmq": 15.2,
  "./consumers/nats": 15.2,
  "./consumers/pg-boss": 15.2,
  "./consumers/rabbitmq-client": 16,
  "./consumers/sqs": 15.2,
  "./functions": 3.2,
  "./http": 24,
  "./http/express": 22,
  "./http/fastify": 25,
  "./http/fetch": 21,
  "./http/hono": 21,
  "./http/node": 22,
  "./jobs": 6,
  "./jobs/croner": 6,
  "./jobs/node-cron": 6,
  "./presets": 1,
  "./stores": 6,
  "./stores/memory": 10,
  "./stores/mysql": 23,
  "./stores/postgres": 24,
  "./stores/redis": 17,
  "./stores/sqlite": 16,
  "./stores/tiered": 6,
  "./testing": 70,
};

/** A subpath without a budget is measured against nothing, so it fails. */
const subpaths = Object.entries(manifest.exports).map(([subpath, { default: target }]) => ({
  name: `oncekey${subpath.slice(1)}`,
  path: `packages/oncekey/${target.slice(2)}`,
  limit: `${budgets[subpath] ?? 0} kB`,
  modifyEsbuildConfig: (config) => ({ ...config, platform: "node" }),
}));

/** Where there is no Node, the hash is code of ours to carry. */
const web = {
  name: "oncekey, in a browser or a worker",
  path: "packages/oncekey/dist/index.js",
  limit: "31 kB",
};

export default [...subpaths, web];
