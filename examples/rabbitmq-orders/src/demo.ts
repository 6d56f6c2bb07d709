/**
 * @module
 * A producer that sends a quarter of its orders twice, two consumers of which one is killed every now and then, and a count of what
 * was charged. The exit code is 0 only if every order was charged once.
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type ConfirmChannel, connect } from "amqplib";
import { type ConsumerProcess, startConsumer } from "./consumers.js";
import { openLedger } from "./ledger.js";
import { declare, type Order, type Queues, queuesOf, send } from "./orders.js";

const ORDERS = 120;
const SENT_TWICE = 30;
const CONSUMERS = 2;
const KILLS = 6;
/** For a machine that is busy; the demo itself takes a quarter of a minute. */
const PATIENCE_MS = 120_000;

const mode = process.argv.slice(2);
const run = randomUUID();
const folder = mkdtempSync(join(tmpdir(), "rabbitmq-orders-"));
const file = join(folder, "shop.db");
const ledger = openLedger(file);
const connection = await connect(process.env.RABBITMQ_URL ?? "amqp://127.0.0.1");
const channel = await connection.createConfirmChannel();
const queues = queuesOf(run);
const running: ConsumerProcess[] = [];
let started = 0;

try {
  process.exitCode = await play();
} finally {
  await Promise.all(running.map((consumer) => consumer.kill()));
  for (const queue of Object.values(queues)) await channel.deleteQueue(queue);
  await connection.close();
  ledger.close();
  rmSync(folder, { recursive: true, force: true });
}

async function play(): Promise<number> {
  await declare(channel, queues);
  for (let n = 0; n < CONSUMERS; n += 1) await startOne();
  const orders = Array.from({ length: ORDERS }, (_, n): Order => ({ id: `order-${n + 1}`, amount: 10 + n }));
  const [killed] = await Promise.all([killAtRandom(), produce(channel, queues, orders)]);
  const left = await drained();
  await Promise.all(running.splice(0).map((consumer) => consumer.kill()));
  const dead = (await channel.checkQueue(queues.dead)).messageCount;
  say(`${ORDERS} orders in ${ORDERS + SENT_TWICE} messages, ${killed} consumers killed by SIGKILL`);
  return judge(orders, left, dead);
}

async function startOne(): Promise<void> {
  started += 1;
  running.push(await startConsumer(String(started), [run, file, ...mode]));
}

/** A second copy follows at once, as from a producer that lost the confirmation, or a little later, as from one that restarted. */
async function produce(to: ConfirmChannel, where: Queues, orders: readonly Order[]): Promise<void> {
  for (const [n, order] of orders.entries()) {
    send(to, where, order);
    if (n % 8 === 0 && n / 8 < SENT_TWICE / 2) send(to, where, order);
    if (n % 10 === 0) await delay(40);
  }
  for (const order of orders.slice(-SENT_TWICE / 2)) send(to, where, order);
  await to.waitForConfirms();
}

async function killAtRandom(): Promise<number> {
  for (let killed = 0; killed < KILLS; killed += 1) {
    await delay(300 + Math.random() * 600);
    const [victim] = running.splice(Math.floor(Math.random() * running.length), 1);
    await victim?.kill();
    await startOne();
  }
  return KILLS;
}

/** Waits until every order has a charge and the broker has nothing left; how many messages it has if that never comes. */
async function drained(): Promise<number> {
  for (let waitedMs = 0; ; waitedMs += 100) {
    const { messageCount } = await channel.checkQueue(queues.orders);
    const isOver = messageCount === 0 && ledger.counts().size === ORDERS;
    if (isOver || waitedMs > PATIENCE_MS) return settle();
    await delay(100);
  }
}

/** What is held unacknowledged by a consumer is seen by the broker once that one is gone; a fresh one finishes it. */
async function settle(): Promise<number> {
  for (let rounds = 0; ; rounds += 1) {
    await Promise.all(running.splice(0).map((consumer) => consumer.kill()));
    const { messageCount } = await channel.checkQueue(queues.orders);
    if (messageCount === 0 || rounds === 10) return messageCount;
    await startOne();
    await delay(3_000);
  }
}

/** Prints what was charged; the exit code. */
function judge(orders: readonly Order[], left: number, dead: number): number {
  const counts = ledger.counts();
  const charges = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const lost = orders.filter(({ id }) => !counts.has(id)).length;
  const twice = orders.filter(({ id }) => (counts.get(id) ?? 0) > 1).length;
  say(
    `${charges} charges; ${lost} orders lost, ${twice} charged twice, ${left} messages left, ${dead} dead letters`,
  );
  const isRight = charges === ORDERS && lost === 0 && twice === 0 && left === 0 && dead === 0;
  say(isRight ? `Every count is right: ${ORDERS} orders, ${charges} charges.` : "The counts are wrong.");
  return isRight ? 0 : 1;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
