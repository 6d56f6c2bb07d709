/**
 * @module scripts/services
 *
 * Servers that tests and benchmarks start for themselves: `const redis = await startServer("redis")`.
 *
 * Each has a free port of 127.0.0.1 and data of its own below the system's temporary folder, and ends with the process that
 * started it, however that one ends. Nothing else is stopped or written to. The programs are looked for on this machine,
 * then in Docker, then installed by apt as root; what can't be had is an error that says what to install.
 */

import { kinds } from "./services/kinds.mjs";
import { findPrograms } from "./services/programs.mjs";
import { startRedisCluster } from "./services/redis-cluster.mjs";
import { startSingle } from "./services/single.mjs";

/**
 * @typedef {"redis" | "redis-cluster" | "postgres" | "mariadb" | "rabbitmq" | "nats"} ServerKind
 * @typedef {import("./services/single.mjs").Server} Server
 * @typedef {import("./services/single.mjs").ServerOptions} ServerOptions
 * @typedef {import("./services/redis-cluster.mjs").Cluster} Cluster
 */

/**
 * Starts a server that nobody else uses, so that it may be stopped, paused and configured at will.
 *
 * @overload
 * @param {"redis-cluster"} kind
 * @param {ServerOptions} [options]
 * @returns {Promise<Cluster>}
 */
/**
 * @overload
 * @param {Exclude<ServerKind, "redis-cluster">} kind
 * @param {ServerOptions} [options]
 * @returns {Promise<Server>}
 */
/**
 * @overload
 * @param {ServerKind} kind
 * @param {ServerOptions} [options]
 * @returns {Promise<Server | Cluster>}
 */
/**
 * @param {ServerKind} kind
 * @param {ServerOptions} [options]
 * @returns {Promise<Server | Cluster>}
 */
export async function startServer(kind, options) {
  return kind === "redis-cluster" ? startRedisCluster(options) : startSingle(kind, options);
}

/**
 * Sees to it that servers can be started, which may mean to install them: that takes longer than a test waits.
 *
 * @param {Iterable<ServerKind>} wanted
 */
export async function prepareServers(wanted) {
  const names = new Set([...wanted].map((kind) => (kind === "redis-cluster" ? "redis" : kind)));
  await Promise.all([...names].map((name) => findPrograms(kinds[name].needs)));
}
