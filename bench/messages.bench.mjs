/**
 * @module
 * Messages per second of a RabbitMQ consumer with and without oncekey, and whether effects are right while consumers are killed.
 *
 * The rate: one consumer process empties a queue that is full, with a handler that does nothing, and with ones that wait 5 ms, as for
 * a query, and 25 ms, as for a call of another service. The variants take turns on one broker; look at the ratios. The proof: 20,000
 * messages, a tenth of them twice, four consumers of which one is killed every second; each must have one row in the end.
 *
 * `node messages.bench.mjs [rounds] [messages of a rate] [messages of the proof]`; without rounds it is the proof alone. The servers are
 * started for this.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "amqplib";
import { fromPg, postgresStore } from "oncekey/stores/postgres";
import pg from "pg";
import { startServer } from "../scripts/services.mjs";
import { inTurns, median, ratio } from "./lib/measure.mjs";
import { section, table } from "./lib/report.mjs";

const rounds = Number(process.argv[2] ?? 3);
const MESSAGES = Number(process.argv[3] ?? 5_000);
const PROOF = Number(process.argv[4] ?? 20_000);
const PREFETCH = 64;
const WORKERS = 4;
/** What a killed consumer held is in flight for one lease, so it holds little. */
const PROOF_PREFETCH = 8;
/** After this, what has no effect yet counts as lost. */
const PROOF_MS = 900_000;
const VARIANTS = ["bare", "redis", "postgres"];

const [rabbitmq, redis, postgres] = await Promise.all(
  ["rabbitmq", "redis", "postgres"].map((kind) => startServer(kind)),
);
const connection = await connect(rabbitmq.url);
const channel = await connection.createConfirmChannel();
const database = new pg.Pool({ connectionString: postgres.url });
await database.query("create table effects (message text not null)");
const records = postgresStore(fromPg(database), { listen: false });
await records.migrate();
await records.close();

/** A body of half a kilobyte. */
const body = Buffer.from(JSON.stringify({ order: "x".repeat(500) }));

async function fill(queue, ids) {
  await channel.assertQueue(queue);
  for (const [n, messageId] of ids.entries()) {
    channel.sendToQueue(queue, body, { messageId, persistent: true });
    if (n % 1_000 === 999) await channel.waitForConfirms();
  }
  await channel.waitForConfirms();
}

function startConsumer(settings) {
  const storeUrl = settings.variant === "redis" ? redis.url : postgres.url;
  const args = { url: rabbitmq.url, storeUrl, ...settings };
  return fork(new URL("lib/consumer.mjs", import.meta.url), [JSON.stringify(args)]);
}

/** SIGKILL to a process that was started here. */
async function kill(child) {
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

let filled = 0;

/** Messages per second from the moment it listens until the queue is empty. */
async function rateOf(variant, holdMs) {
  filled += 1;
  const queue = `rate-${filled}`;
  await fill(
    queue,
    Array.from({ length: MESSAGES }, (_, n) => `${queue}-${n}`),
  );
  const child = startConsumer({ variant, queue, prefetch: PREFETCH, holdMs });
  const rate = await new Promise((resolve) => {
    let beganAt;
    child.on("message", ({ listens, handled }) => {
      if (listens) beganAt ??= performance.now();
      if (handled === 100) beganAt = performance.now();
      if (handled === MESSAGES) resolve(((MESSAGES - 100) / (performance.now() - beganAt)) * 1_000);
    });
  });
  await kill(child);
  await channel.deleteQueue(queue);
  return rate;
}

async function measureRates(holdMs) {
  const results = await inTurns(VARIANTS, rounds, (variant) => rateOf(variant, holdMs));
  section(`Messages per second, a handler of ${holdMs} ms, prefetch ${PREFETCH}`);
  table(
    ["consumer", "messages/s", "of bare"],
    VARIANTS.map((variant) => [
      variant,
      Math.round(median(results.get(variant))).toLocaleString("en"),
      `${Math.round(100 * ratio(results, variant, "bare", (rate) => rate))} %`,
    ]),
  );
}

async function prove() {
  const queue = "proof";
  const ids = Array.from({ length: PROOF }, (_, n) => `message-${n}`);
  await fill(
    queue,
    ids.flatMap((id, n) => (n % 10 === 0 ? [id, id] : [id])),
  );
  const settings = { variant: "crash", queue, prefetch: PROOF_PREFETCH, holdMs: 5 };
  /** Those that listen, the longest first: one that is still starting is not worth killing. */
  const listening = [];
  const children = new Set();
  const startOne = () => {
    const child = startConsumer(settings);
    children.add(child);
    child.on("message", ({ listens }) => void (listens && listening.push(child)));
  };
  for (let n = 0; n < WORKERS; n += 1) startOne();
  const startedAt = performance.now();
  let killed = 0;
  const done = async () =>
    Number((await database.query("select count(distinct message) as n from effects")).rows[0].n);
  while ((await done()) < PROOF && performance.now() - startedAt < PROOF_MS) {
    await delay(1_000);
    const victim = listening.shift();
    if (victim === undefined) continue;
    children.delete(victim);
    await kill(victim);
    startOne();
    killed += 1;
  }
  await delay(5_000);
  await Promise.all([...children].map(kill));
  const { rows } = await database.query(
    "select count(*) as rows, count(distinct message) as messages from effects",
  );
  const [{ rows: effects, messages }] = rows;
  section(
    `${PROOF.toLocaleString("en")} messages, a tenth of them twice, ${WORKERS} consumers, ${killed} times one was killed`,
  );
  table(
    ["effects", "messages without one", "messages with two"],
    [[effects, PROOF - Number(messages), Number(effects) - Number(messages)].map(String)],
  );
  if (Number(effects) !== PROOF || Number(messages) !== PROOF) process.exitCode = 1;
}

if (rounds > 0) for (const holdMs of [0, 5, 25]) await measureRates(holdMs);
await prove();
await database.end();
await connection.close();
await Promise.all([rabbitmq, redis, postgres].map((server) => server.close()));
