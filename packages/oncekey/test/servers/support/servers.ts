/**
 * @module test/servers/support/servers
 *
 * Real servers for tests. The addresses of shared ones lead to a database that no other file has (Redis numbers them; of a cluster,
 * which has only one, and of a broker take `uniquePrefix`). Who stops, pauses or configures a server takes one of its own.
 *
 * Ask at the top of the file, `const url = await redisUrl()`: the first to ask waits until the server has started.
 */
import { randomUUID } from "node:crypto";
import { inject } from "vitest";
import { startServer } from "../../../../../scripts/services.mjs";
import type { Answer, Wanted } from "./shared-servers.js";

export async function redisUrl(): Promise<string> {
  return one("redis");
}

/** The nodes of a cluster of three, without replicas. */
export async function redisClusterUrls(): Promise<readonly string[]> {
  return ask("redis-cluster");
}

export async function postgresUrl(): Promise<string> {
  return one("postgres");
}

export async function mariadbUrl(): Promise<string> {
  return one("mariadb");
}

/** MySQL itself is tested where the environment gives the address of one (`ONCEKEY_TEST_MYSQL_URL`). */
export async function mysqlUrl(): Promise<string | undefined> {
  const [url] = await ask("mysql");
  return url;
}

/** Files share it, so that queues and exchanges begin with a name of their own (`uniquePrefix`). */
export async function rabbitmqUrl(): Promise<string> {
  return one("rabbitmq");
}

/** With JetStream. Files share it, so that streams and subjects begin with a name of their own (`uniquePrefix`). */
export async function natsUrl(): Promise<string> {
  return one("nats");
}

/**
 * `ownServer(kind, { settings })`: a server that this test file may stop, pause and restart. It has ended with the file at the latest;
 * `close()` ends it before.
 */
export { startServer as ownServer };

/** Begins the names of what one test keeps on a server that it shares. */
export function uniquePrefix(): string {
  return `test-${randomUUID()}`;
}

async function one(wanted: Wanted): Promise<string> {
  const [url] = await ask(wanted);
  if (url === undefined) throw new Error(`no address of ${wanted} was given`);
  return url;
}

async function ask(wanted: Wanted): Promise<readonly string[]> {
  const response = await fetch(`${inject("sharedServers")}/${wanted}`);
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  const { urls }: Answer = JSON.parse(text);
  return urls;
}
