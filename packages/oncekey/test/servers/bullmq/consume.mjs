/**
 * @module test/servers/bullmq/consume
 *
 * A worker of BullMQ, in whichever process. Its lock is short, so that what a killed one held comes again soon.
 */
import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { handleOnce } from "oncekey/consumers/bullmq";

/** @type {import("../support/consumers/crashing.mjs").Consume} */
export async function consume({ place, idempotency, options, key, handler }) {
  const { url, queue } = JSON.parse(place);
  const connection = new Redis(url, { maxRetriesPerRequest: null });
  /** @typedef {import("oncekey/testing").ContractMessage} Message */
  const worker = new Worker(
    queue,
    handleOnce(
      idempotency,
      {
        ...options,
        key: (/** @type {import("bullmq").Job<Message, void, string>} */ job) => key(job.data),
      },
      (job, work) => handler(job.data, work),
    ),
    { connection, concurrency: 8, lockDuration: 3_000, stalledInterval: 1_000, maxStalledCount: 20 },
  );
  worker.on("error", () => {});
  await worker.waitUntilReady();
  return {
    async stop() {
      await worker.close();
      connection.disconnect();
    },
  };
}
