/**
 * @module test/servers/nats/nats-subject
 *
 * A stream of its own for each case, which keeps what is not acknowledged; dead letters are published beside it.
 */
import { setTimeout as delay } from "node:timers/promises";
import { AckPolicy, jetstream, jetstreamManager, RetentionPolicy, StorageType } from "@nats-io/jetstream";
import { connect, headers, nanos } from "@nats-io/transport-node";
import type { ConsumerSubject } from "oncekey/testing";
import { sharedRecords } from "../support/consumers/records.js";
import { uniquePrefix } from "../support/servers.js";
import { ACK_WAIT_MS, consume, KEY_HEADER } from "./consume.mjs";

const MOST_POLLS = 25;
const client = new URL("consume.mjs", import.meta.url).href;

export async function openNatsSubject(url: string, redisUrl: string): Promise<ConsumerSubject> {
  const name = uniquePrefix();
  const connection = await connect({ servers: url });
  const streams = jetstream(connection);
  const admin = await jetstreamManager(connection);
  await admin.streams.add({
    name,
    subjects: [name],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.Memory,
  });
  await admin.consumers.add(name, {
    durable_name: name,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(ACK_WAIT_MS),
  });
  const dead: string[] = [];
  connection.subscribe(`${name}.dead`, { callback: (_error, message) => void dead.push(message.string()) });
  const place = JSON.stringify({ url, name });
  const records = sharedRecords(redisUrl, client, place);
  return {
    ...records,
    async publish(messages) {
      for (const { key, body } of messages) {
        const given = headers();
        if (key !== undefined) given.set(KEY_HEADER, key);
        await streams.publish(name, body, { headers: given });
      }
    },
    consume: (idempotency, options, key, handler) => consume({ place, idempotency, options, key, handler }),
    deadLetters: async () => [...dead],
    // What was acknowledged a moment ago leaves the stream a moment later.
    async left() {
      let left = 0;
      for (let polls = 0; polls < MOST_POLLS; polls += 1) {
        left = (await admin.streams.info(name)).state.messages;
        if (left === 0) return 0;
        await delay(20);
      }
      return left;
    },
    async close() {
      await admin.streams.delete(name);
      await connection.close();
      await records.close();
    },
  };
}
