/** What only JetStream has: `ack_wait`, and messages that are terminated. */
import {
  AckPolicy,
  type ConsumerMessages,
  type JsMsg,
  jetstream,
  jetstreamManager,
  StorageType,
} from "@nats-io/jetstream";
import { connect, nanos } from "@nats-io/transport-node";
import { createIdempotency } from "oncekey";
import { handleOnce } from "oncekey/consumers/nats";
import { memoryStore } from "oncekey/stores/memory";
import { afterEach, expect, it } from "vitest";
import { natsUrl, uniquePrefix } from "../support/servers.js";

const url = await natsUrl();
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const ACK_WAIT_MS = 600;

async function stream() {
  const name = uniquePrefix();
  const connection = await connect({ servers: url });
  const admin = await jetstreamManager(connection);
  await admin.streams.add({ name, subjects: [name], storage: StorageType.Memory });
  await admin.consumers.add(name, {
    durable_name: name,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(ACK_WAIT_MS),
  });
  closers.push(async () => {
    await admin.streams.delete(name);
    await connection.close();
  });
  const client = jetstream(connection);
  return {
    publish: (body: string) => client.publish(name, body),
    async consume(callback: (message: JsMsg) => void): Promise<ConsumerMessages> {
      const consumer = await client.consumers.get(name, name);
      const messages = await consumer.consume({ callback });
      closers.push(() => messages.close());
      return messages;
    },
    async unanswered() {
      const { num_ack_pending, num_pending } = await admin.consumers.info(name, name);
      return num_ack_pending + num_pending;
    },
  };
}

function instance() {
  return createIdempotency({ store: memoryStore() });
}

it("keeps a message that takes longer than the server waits from coming again", async () => {
  const { publish, consume, unanswered } = await stream();
  let deliveries = 0;
  const handle = handleOnce(
    instance(),
    { consumer: "billing", key: (m) => String(m.seq), ackWaitMs: ACK_WAIT_MS },
    () => new Promise((resolve) => setTimeout(resolve, 3 * ACK_WAIT_MS)),
  );
  await consume((message) => {
    deliveries += 1;
    void handle(message);
  });
  await publish("slow");
  await expect.poll(() => deliveries).toBe(1);
  await expect.poll(unanswered, { timeout: 10_000 }).toBe(0);
  expect(deliveries).toBe(1);
});

it("terminates a dead letter, which never comes again", async () => {
  const { publish, consume, unanswered } = await stream();
  let deliveries = 0;
  const handle = handleOnce(instance(), { consumer: "billing", key: () => undefined }, () => undefined);
  await consume((message) => {
    deliveries += 1;
    void handle(message);
  });
  await publish("anonymous");
  await expect.poll(unanswered).toBe(0);
  expect(deliveries).toBe(1);
});

it("puts a message back whose dead letter was not kept", async () => {
  const { publish, consume, unanswered } = await stream();
  let tries = 0;
  const handle = handleOnce(
    instance(),
    {
      consumer: "billing",
      key: () => undefined,
      backoff: { firstMs: 10, mostMs: 20 },
      deadLetter: () => {
        tries += 1;
        if (tries < 3) throw new Error("no stream matches");
      },
    },
    () => undefined,
  );
  await consume(handle);
  await publish("anonymous");
  await expect.poll(unanswered).toBe(0);
  expect(tries).toBe(3);
});
