/**
 * @module
 * The service: charges orders from a queue. `node consumer.js <name> <run> <file> [--without-oncekey]`, and it may be killed at any time.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type ConsumeMessage, connect } from "amqplib";
import Database from "libsql";
import { createIdempotency } from "oncekey";
import { handleOnce } from "oncekey/consumers/amqplib";
import { fromLibsql, sqliteStore } from "oncekey/stores/sqlite";
import { INSERT, openLedger } from "./ledger.js";
import { type Order, queuesOf } from "./orders.js";

const [name = "", run = "", file = "", mode = ""] = process.argv.slice(2);
const PREFETCH = 4;

const connection = await connect(process.env.RABBITMQ_URL ?? "amqp://127.0.0.1");
const channel = await connection.createConfirmChannel();
await channel.prefetch(PREFETCH);

/** The card network takes its time, and this process may die meanwhile. */
async function authorise(): Promise<void> {
  await delay(50 + Math.random() * 100);
}

if (mode === "--without-oncekey") {
  const ledger = openLedger(file);
  const charge = async (message: ConsumeMessage): Promise<void> => {
    await authorise();
    ledger.charge(JSON.parse(message.content.toString()) as Order, name);
    await authorise();
    channel.ack(message);
  };
  await channel.consume(queuesOf(run).orders, (message) => {
    if (message !== null) void charge(message);
  });
} else {
  const idempotency = createIdempotency({
    store: sqliteStore(fromLibsql(() => new Database(file))),
    guarantee: "exactly-once",
    leaseMs: 2_000,
    storeTimeoutMs: 500,
  });
  const charge = handleOnce(
    idempotency,
    channel,
    { consumer: "billing", key: (message) => message.properties.messageId },
    async (message, { transaction }) => {
      const { id, amount } = JSON.parse(message.content.toString()) as Order;
      await authorise();
      await transaction.run(INSERT, [id, amount, name]);
    },
  );
  await channel.consume(queuesOf(run).orders, charge);
}
process.send?.("ready");
