/**
 * @module test/servers/pg-boss/pg-boss-subject
 *
 * A queue of its own for each case, and one for its dead letters, in a database that ends with the file; records in a shared Redis.
 */
import type { ConsumerSubject } from "oncekey/testing";
import PgBoss from "pg-boss";
import { sharedRecords } from "../support/consumers/records.js";
import { uniquePrefix } from "../support/servers.js";
import { consume } from "./consume.mjs";

const client = new URL("consume.mjs", import.meta.url).href;
const MOST_DEAD = 10;

export async function openPgBossSubject(url: string, redisUrl: string): Promise<ConsumerSubject> {
  const schema = "pgboss";
  const queue = uniquePrefix();
  const boss = new PgBoss({ connectionString: url, schema, supervise: false, schedule: false, max: 2 });
  boss.on("error", () => undefined);
  await boss.start();
  await boss.createQueue(`${queue}-dead`);
  // A job that is put back lets the next one pass, and a killed worker's comes again soon.
  await boss.createQueue(queue, {
    name: queue,
    retryLimit: 50,
    retryDelay: 1,
    expireInSeconds: 3,
  });
  const place = JSON.stringify({ url, schema, queue });
  const records = sharedRecords(redisUrl, client, place);
  const dead: string[] = [];
  return {
    ...records,
    async publish(messages) {
      for (const message of messages) await boss.send(queue, { ...message });
    },
    consume: (idempotency, options, key, handler) => consume({ place, idempotency, options, key, handler }),
    async deadLetters() {
      const jobs = await boss.fetch<{ data: { body: string } }>(`${queue}-dead`, { batchSize: MOST_DEAD });
      dead.push(...jobs.map(({ data }) => data.data.body));
      return [...dead];
    },
    left: () => boss.getQueueSize(queue, { before: "completed" }),
    async close() {
      await boss.stop({ graceful: false });
      await records.close();
    },
  };
}
