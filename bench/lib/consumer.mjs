/**
 * @module
 * A consumer of its own process, for `messages.bench.mjs`: `bare`, or with oncekey on Redis or Postgres. It says when it listens and how many
 * messages it has acknowledged for, and may be killed at any time.
 *
 * `crash` writes its effect through the transaction of an exactly-once run, so that the rows tell what happened however often it is killed.
 */
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "amqplib";
import { createIdempotency } from "oncekey";
import { handleOnce } from "oncekey/consumers/amqplib";

const { variant, url, queue, storeUrl, prefetch, holdMs } = JSON.parse(process.argv[2]);

const connection = await connect(url);
const channel = await connection.createChannel();
await channel.prefetch(prefetch);
let handled = 0;

/** What the application does for a message: it waits for somebody else. */
async function handle() {
  if (holdMs > 0) await delay(holdMs);
}

function count() {
  handled += 1;
  if (handled % 100 === 0) process.send?.({ handled });
}

async function storeOf() {
  if (variant === "redis") {
    const [{ Redis }, { fromIoredis, redisStore }] = await Promise.all([
      import("ioredis"),
      import("oncekey/stores/redis"),
    ]);
    return redisStore(fromIoredis(new Redis(storeUrl, { lazyConnect: true })));
  }
  const [{ default: pg }, { fromPg, postgresStore }] = await Promise.all([
    import("pg"),
    import("oncekey/stores/postgres"),
  ]);
  return postgresStore(fromPg(new pg.Pool({ connectionString: storeUrl, max: 10 })));
}

async function callback() {
  if (variant === "bare") {
    return async (message) => {
      await handle();
      channel.ack(message);
      count();
    };
  }
  const crash = variant === "crash";
  const idempotency = createIdempotency({
    store: await storeOf(),
    ...(crash ? { guarantee: "exactly-once", leaseMs: 4_000, storeTimeoutMs: 1_000 } : {}),
  });
  const options = {
    consumer: "bench",
    key: (message) => message.properties.messageId,
    onVerdict: ({ kind }) => void (kind === "done" && count()),
  };
  return handleOnce(idempotency, channel, options, async (message, { transaction }) => {
    await handle();
    await transaction?.query("insert into effects (message) values ($1)", [message.properties.messageId]);
  });
}

await channel.consume(queue, await callback());
process.send?.({ listens: true });
