/**
 * @module test/servers/rabbitmq/rabbitmq-subject
 *
 * A queue of its own for each case, with its dead letters and a queue for what comes later; records in a shared Redis.
 */
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "amqplib";
import { Redis } from "ioredis";
import { fromIoredis, redisStore } from "oncekey/stores/redis";
import type { ConsumerSubject } from "oncekey/testing";
import { requireFreshBuild } from "../faults/app-process.js";
import { type ClientName, clients } from "./apps/clients.mjs";
import type { CrashSettings } from "./apps/crashing.mjs";

const crashing = fileURLToPath(new URL("apps/crashing.mjs", import.meta.url));

export async function openRabbitmqSubject(
  client: ClientName,
  url: string,
  redisUrl: string,
): Promise<ConsumerSubject> {
  requireFreshBuild();
  const queue = `orders-${randomUUID()}`;
  const prefix = `${queue}:`;
  const folder = mkdtempSync(join(tmpdir(), "oncekey-rabbitmq-"));
  const connection = await connect(url);
  const channel = await connection.createConfirmChannel();
  await channel.assertQueue(`${queue}.dead`);
  await channel.assertQueue(`${queue}.later`, { deadLetterExchange: "", deadLetterRoutingKey: queue });
  await channel.assertQueue(queue, { deadLetterExchange: "", deadLetterRoutingKey: `${queue}.dead` });
  const redis = new Redis(redisUrl, { lazyConnect: true });
  const store = redisStore(fromIoredis(redis), { prefix });
  const dead: string[] = [];
  await channel.consume(`${queue}.dead`, (message) => void dead.push(message?.content.toString() ?? ""), {
    noAck: true,
  });

  return {
    store,
    async publish(messages) {
      for (const { key, body } of messages) {
        channel.sendToQueue(queue, Buffer.from(body), {
          ...(key === undefined ? {} : { messageId: key }),
          persistent: true,
        });
      }
      await channel.waitForConfirms();
    },
    consume: (idempotency, options, key, handler) =>
      clients[client]({ url, queue, idempotency, options, key, handler }),
    async crash(at) {
      const effects = join(folder, randomUUID());
      const settings: CrashSettings = { client, at, url, queue, redisUrl, prefix, effects };
      const child = fork(crashing, [JSON.stringify(settings)]);
      const [, signal] = await once(child, "exit");
      if (signal !== "SIGKILL") throw new Error("the process ended before it could kill itself");
      return existsSync(effects) ? readFileSync(effects, "utf8").trim().split("\n") : [];
    },
    deadLetters: async () => [...dead],
    async left() {
      const [waiting, later] = await Promise.all([
        channel.checkQueue(queue),
        channel.checkQueue(`${queue}.later`),
      ]);
      return waiting.messageCount + later.messageCount;
    },
    async close() {
      for (const name of [queue, `${queue}.later`, `${queue}.dead`]) await channel.deleteQueue(name);
      await connection.close();
      await store.close();
      redis.disconnect();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
