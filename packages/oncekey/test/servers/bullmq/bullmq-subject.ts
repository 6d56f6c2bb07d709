/**
 * @module test/servers/bullmq/bullmq-subject
 *
 * A queue of its own for each case; its dead letters are the jobs that failed.
 */
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import type { ConsumerSubject, ContractMessage } from "oncekey/testing";
import { sharedRecords } from "../support/consumers/records.js";
import { uniquePrefix } from "../support/servers.js";
import { consume } from "./consume.mjs";

const client = new URL("consume.mjs", import.meta.url).href;
/** What failed is tried again soon, and often enough for every case. */
const RETRIES = { attempts: 20, backoff: { type: "fixed", delay: 50 } } as const;

export async function openBullmqSubject(url: string): Promise<ConsumerSubject> {
  const name = uniquePrefix();
  const connection = new Redis(url, { maxRetriesPerRequest: null });
  const queue = new Queue<ContractMessage>(name, { connection });
  const place = JSON.stringify({ url, queue: name });
  const records = sharedRecords(url, client, place);
  return {
    ...records,
    async publish(messages) {
      await queue.addBulk(messages.map((data) => ({ name: "order", data, opts: RETRIES })));
    },
    consume: (idempotency, options, key, handler) => consume({ place, idempotency, options, key, handler }),
    deadLetters: async () => (await queue.getFailed()).map(({ data }) => data.body),
    async left() {
      const counts = await queue.getJobCounts("waiting", "active", "delayed");
      return Object.values(counts).reduce((sum, count) => sum + count, 0);
    },
    async close() {
      await queue.obliterate({ force: true });
      await queue.close();
      connection.disconnect();
      await records.close();
    },
  };
}
