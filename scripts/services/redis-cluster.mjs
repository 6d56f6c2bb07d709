/**
 * @module scripts/services/redis-cluster
 *
 * Three nodes of Redis that share the 16,384 slots, without replicas: enough for everything that a client must do right in a cluster.
 */

import { freePort } from "./ports.mjs";
import { startSingle } from "./single.mjs";
import { askRedis, until } from "./wire.mjs";

/**
 * @typedef {import("./single.mjs").Server & { urls: readonly string[], nodes: readonly import("./single.mjs").Server[] }} Cluster
 *   what one server does, done to all three
 */

const slotRanges = ["0 5460", "5461 10922", "10923 16383"];

/**
 * @param {import("./single.mjs").ServerOptions} [options]
 * @returns {Promise<Cluster>}
 */
export async function startRedisCluster({ settings = {} } = {}) {
  const started = await Promise.allSettled(slotRanges.map(() => startNode(settings)));
  const nodes = started.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const all = async (/** @type {(node: import("./single.mjs").Server) => Promise<unknown>} */ act) => {
    await Promise.all(nodes.map(act));
  };
  const close = () => all((node) => node.close());
  try {
    for (const each of started) if (each.status === "rejected") throw each.reason;
    await join(nodes);
  } catch (error) {
    await close();
    throw error;
  }
  const [{ url, port } = { url: "", port: 0 }] = nodes;
  const start = async () => {
    await all((node) => node.start());
    await untilWhole(nodes);
  };
  const stop = (/** @type {NodeJS.Signals | undefined} */ signal) => all((node) => node.stop(signal));
  return {
    url,
    urls: nodes.map((node) => node.url),
    port,
    nodes,
    start,
    stop,
    restart: async () => {
      await stop(undefined);
      await start();
    },
    pause: () => all((node) => node.pause()),
    resume: () => all((node) => node.resume()),
    close,
  };
}

/** @param {import("./kinds.mjs").Settings} settings */
async function startNode(settings) {
  const busPort = await freePort();
  const node = await startSingle("redis", {
    onHostNetwork: true,
    settings: {
      "cluster-enabled": "yes",
      "cluster-port": String(busPort),
      "cluster-node-timeout": "2000",
      databases: "1",
      ...settings,
    },
  });
  return { ...node, busPort };
}

/** @param {readonly (import("./single.mjs").Server & { busPort: number })[]} nodes */
async function join(nodes) {
  for (const [index, { port }] of nodes.entries()) {
    // Distinct from the start, so that the nodes have no conflict of epochs to settle by themselves.
    await askRedis(port, `CLUSTER SET-CONFIG-EPOCH ${index + 1}`);
    await askRedis(port, `CLUSTER ADDSLOTSRANGE ${slotRanges[index]}`);
  }
  const [first, ...others] = nodes;
  for (const { port } of others)
    await askRedis(port, `CLUSTER MEET 127.0.0.1 ${first?.port} ${first?.busPort}`);
  await untilWhole(nodes);
}

/** @param {readonly import("./single.mjs").Server[]} nodes */
async function untilWhole(nodes) {
  await until(
    async () => {
      const seen = await Promise.all(nodes.map(({ port }) => askRedis(port, "CLUSTER INFO")));
      return seen.every(
        (info) => info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${nodes.length}`),
      );
    },
    { timeoutMs: 30_000, what: "the Redis cluster" },
  );
}
