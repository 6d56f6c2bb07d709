/**
 * What amqplib and RabbitMQ do that a contract for all brokers cannot ask: channels that close, copies that find no queue, consumers
 * that are cancelled, a prefetch that is full.
 */
import {
  type ChannelModel,
  type ConfirmChannel,
  type ConsumeMessage,
  connect,
  type GetMessage,
} from "amqplib";
import { createIdempotency, type IdempotencyEvent } from "oncekey";
import { type AmqplibOptions, handleOnce } from "oncekey/consumers/amqplib";
import { memoryStore } from "oncekey/stores/memory";
import { afterEach, beforeEach, expect, test } from "vitest";
import { rabbitmqUrl, uniquePrefix } from "../support/servers.js";

const url = await rabbitmqUrl();
let connection: ChannelModel;
let channel: ConfirmChannel;
let queue: string;
let events: IdempotencyEvent[];
const memory = memoryStore();
const idempotency = createIdempotency({ store: memory, onEvent: (event) => void events.push(event) });

beforeEach(async () => {
  events = [];
  queue = uniquePrefix();
  connection = await connect(url);
  channel = await connection.createConfirmChannel();
  await channel.assertQueue(`${queue}.dead`);
  await channel.assertQueue(queue, { deadLetterExchange: "", deadLetterRoutingKey: `${queue}.dead` });
});

afterEach(async () => {
  const cleaning = await connection.createChannel();
  for (const name of [queue, `${queue}.dead`, `${queue}.later`]) await cleaning.deleteQueue(name);
  await connection.close();
});

function callback(
  on: ConfirmChannel,
  handler: (message: ConsumeMessage) => void | Promise<void>,
  options: Partial<AmqplibOptions<void, "at-least-once">> = {},
) {
  const key = (message: ConsumeMessage) => message.properties.messageId;
  const backoff = { firstMs: 20, mostMs: 100 };
  return handleOnce(idempotency, on, { consumer: queue, key, backoff, ...options }, handler);
}

async function publish(messageId: string, options: object = {}): Promise<void> {
  channel.sendToQueue(queue, Buffer.from("hello"), { messageId, ...options });
  await channel.waitForConfirms();
}

async function count(name: string): Promise<number> {
  return (await channel.checkQueue(name)).messageCount;
}

async function taken(name: string): Promise<GetMessage> {
  const message = await channel.get(name, { noAck: true });
  if (message === false) throw new Error(`${name} is empty`);
  return message;
}

const warnings = () => events.flatMap((event) => (event.type === "warning" ? [event.text] : []));

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let polls = 0; !(await holds()); polls += 1) {
    if (polls > 1_000) throw new Error("it never happened");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test("a consumer that the broker cancels is a warning, and throws nothing", async () => {
  await channel.consume(
    queue,
    callback(channel, () => undefined),
  );
  await channel.deleteQueue(queue);
  await until(() => warnings().length > 0);
  expect(warnings()).toEqual([expect.stringMatching(/cancelled the consumer/)]);
});

test("a handler that ends after its channel has closed answers for nothing, and its message is acknowledged next time", async () => {
  const other = await connection.createConfirmChannel();
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let runs = 0;
  const handler = () => {
    runs += 1;
    return opened;
  };
  await other.consume(queue, callback(other, handler));
  await publish("m1");
  await until(() => runs === 1);
  await other.close();
  const verdicts: string[] = [];
  await channel.consume(
    queue,
    callback(channel, handler, { onVerdict: ({ kind }) => void verdicts.push(kind) }),
  );
  await until(() => verdicts.includes("put-back"));
  open();
  await until(() => verdicts.includes("done"));
  expect(runs).toBe(1);
});

test("what is put back finds no queue: it is not lost, but held and requeued", async () => {
  let runs = 0;
  const flaky = () => {
    runs += 1;
    if (runs === 1) throw new Error("not yet");
  };
  await channel.consume(
    queue,
    callback(channel, flaky, { putBack: { queue: `${queue}.later`, delayMs: 10 } }),
  );
  await publish("m1");
  await until(() => runs === 2);
  expect(warnings()).toEqual([expect.stringMatching(/could not be put into the queue for what is put back/)]);
});

test("a dead letter finds no queue: it stays in its own until there is one, and says why it is there", async () => {
  const deadLetter = { queue: `${queue}.later` };
  await channel.consume(
    queue,
    callback(channel, () => undefined, { key: () => undefined, deadLetter }),
  );
  await publish("m1");
  await until(() => warnings().length > 1);
  await channel.assertQueue(`${queue}.later`);
  await until(async () => (await count(`${queue}.later`)) === 1);
  const message = await taken(`${queue}.later`);
  expect(message.properties.headers).toMatchObject({ "x-oncekey-reason": "key-missing" });
  expect(message.content.toString()).toBe("hello");
});

test("a copy keeps what belongs to the message and drops what would send or refuse it again", async () => {
  await channel.assertQueue(`${queue}.later`);
  const fails = () => {
    throw new Error("declined");
  };
  await channel.consume(
    queue,
    callback(channel, fails, { putBack: { queue: `${queue}.later`, delayMs: 60_000 } }),
  );
  // A copy that kept CC would come here a second time.
  await publish("m1", {
    CC: [`${queue}.dead`],
    headers: { tenant: "a" },
    correlationId: "c1",
    expiration: 50_000,
  });
  await until(async () => (await count(`${queue}.later`)) === 1);
  const { properties } = await taken(`${queue}.later`);
  expect(properties).toMatchObject({
    messageId: "m1",
    correlationId: "c1",
    expiration: "60000",
    headers: { tenant: "a", "x-oncekey-deliveries": 1 },
  });
  expect(await count(`${queue}.dead`)).toBe(1);
});

test("a crash between a copy and its acknowledgement leaves two messages with one key, and one effect", async () => {
  await channel.assertQueue(`${queue}.later`, { deadLetterExchange: "", deadLetterRoutingKey: queue });
  const dying = await connection.createConfirmChannel();
  // What it would have said is not said any more.
  Object.assign(dying, { ack: () => undefined });
  const fails = () => {
    throw new Error("declined");
  };
  await dying.consume(queue, callback(dying, fails, { putBack: { queue: `${queue}.later`, delayMs: 200 } }));
  await publish("m1");
  await until(async () => (await count(`${queue}.later`)) === 1);
  await dying.close();
  let runs = 0;
  const verdicts: string[] = [];
  const counted = callback(
    channel,
    () => {
      runs += 1;
    },
    {
      onVerdict: ({ kind }) => void verdicts.push(kind),
    },
  );
  await channel.consume(queue, counted);
  await until(() => verdicts.filter((kind) => kind === "done").length === 2);
  expect(runs).toBe(1);
});

test("what is held takes its place in the prefetch, and goes back at once when its consumer stops", async () => {
  const stopping = new AbortController();
  await channel.prefetch(2);
  let starts = 0;
  const fails = () => {
    starts += 1;
    throw new Error("declined");
  };
  const backoff = { firstMs: 600_000, mostMs: 600_000 };
  const consume = callback(channel, fails, { backoff, stopping: stopping.signal });
  const { consumerTag } = await channel.consume(queue, consume);
  for (const id of ["m1", "m2", "m3", "m4"]) await publish(id);
  await until(() => starts === 2);
  expect(await count(queue)).toBe(2);
  expect(starts).toBe(2);
  await channel.cancel(consumerTag);
  stopping.abort();
  await until(async () => (await count(queue)) === 4);
});

test("options are checked when the callback is made", async () => {
  const plain = await connection.createChannel();
  const options = {
    consumer: "c",
    key: () => "k",
    putBack: { queue: "", delayMs: 0 },
    deadLetter: "queue",
    stopping: 1,
  };
  expect(() => handleOnce(idempotency, plain, options as never, () => undefined)).toThrow(
    expect.objectContaining({
      problems: [
        "putBack.queue must be the name of a queue",
        "putBack needs a confirm channel: connection.createConfirmChannel()",
        expect.stringMatching(/^putBack.delayMs must be a number/),
        'deadLetter must be "exchange" or { queue }',
        "stopping must be an AbortSignal",
      ],
    }),
  );
  expect(() =>
    handleOnce(idempotency, {} as never, { consumer: "c", key: () => "k" }, () => undefined),
  ).toThrow(/channel, the second argument/);
});
