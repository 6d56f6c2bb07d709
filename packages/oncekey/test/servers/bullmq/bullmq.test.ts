/** What only BullMQ has: return values, attempts, and a lock of its own. */
import { type Job, Queue, QueueEvents, UnrecoverableError, Worker } from "bullmq";
import { Redis } from "ioredis";
import { createIdempotency } from "oncekey";
import { handleOnce, type Processor } from "oncekey/consumers/bullmq";
import { memoryStore } from "oncekey/stores/memory";
import { afterEach, expect, it } from "vitest";
import { redisUrl, uniquePrefix } from "../support/servers.js";

interface Order {
  readonly id?: string;
}
type OrderJob = Job<Order, number, string>;

const url = await redisUrl();
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function connect(): Redis {
  const redis = new Redis(url, { maxRetriesPerRequest: null });
  closers.push(async () => redis.disconnect());
  return redis;
}

async function queueWith(processor: Processor<Order, number, string>, concurrency = 1) {
  const name = uniquePrefix();
  const queue = new Queue<Order, number, string>(name, { connection: connect() });
  const events = new QueueEvents(name, { connection: connect() });
  const worker = new Worker<Order, number, string>(name, processor, { connection: connect(), concurrency });
  worker.on("error", () => undefined);
  closers.push(
    () => queue.close(),
    () => events.close(),
    () => worker.close(),
  );
  await Promise.all([events.waitUntilReady(), worker.waitUntilReady()]);
  return { queue, events };
}

function instance() {
  return createIdempotency({ store: memoryStore() });
}

const byId = { consumer: "billing", key: (job: OrderJob) => job.data.id };

it("gives a repeat the return value of the first run", async () => {
  let runs = 0;
  const processor = handleOnce(instance(), byId, () => {
    runs += 1;
    return 42;
  });
  const { queue, events } = await queueWith(processor);
  const first = await queue.add("order", { id: "o1" });
  expect(await first.waitUntilFinished(events)).toBe(42);
  const second = await queue.add("order", { id: "o1" });
  expect(await second.waitUntilFinished(events)).toBe(42);
  expect(runs).toBe(1);
});

it("spends no attempt on a job that is put back while another handles its key", async () => {
  let open: (() => void) | undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const options = { ...byId, backoff: { firstMs: 50, mostMs: 50 } };
  const processor = handleOnce(instance(), options, async () => {
    await opened;
    return 1;
  });
  const { queue, events } = await queueWith(processor, 2);
  const jobs = await queue.addBulk([
    { name: "order", data: { id: "o1" } },
    { name: "order", data: { id: "o1" } },
  ]);
  await expect.poll(() => queue.getDelayedCount()).toBe(1);
  open?.();
  for (const job of jobs) expect(await job.waitUntilFinished(events)).toBe(1);
  const after = await Promise.all(jobs.map((job) => queue.getJob(job.id ?? "")));
  expect(after.map((job) => job?.attemptsMade)).toEqual([1, 1]);
  expect(Math.max(...after.map((job) => job?.attemptsStarted ?? 0))).toBeGreaterThan(1);
});

it("lets the job's own attempts count what its handler throws", async () => {
  let runs = 0;
  const processor = handleOnce(instance(), byId, () => {
    runs += 1;
    throw new Error("declined");
  });
  const { queue, events } = await queueWith(processor);
  const job = await queue.add("order", { id: "o1" }, { attempts: 3 });
  await expect(job.waitUntilFinished(events)).rejects.toThrow("declined");
  expect(runs).toBe(3);
});

it("fails a dead letter for good, whatever attempts are left, with its reason", async () => {
  const { queue, events } = await queueWith(handleOnce(instance(), byId, () => 1));
  const job = await queue.add("order", {}, { attempts: 5 });
  await expect(job.waitUntilFinished(events)).rejects.toThrow("key-missing");
  expect((await queue.getJob(job.id ?? ""))?.attemptsMade).toBe(1);
  expect(new UnrecoverableError().name).toBe("UnrecoverableError");
});

it("tells the handler when the lock of its job is lost", async () => {
  const redis = connect();
  let told: ((reason: unknown) => void) | undefined;
  const heard = new Promise<unknown>((resolve) => {
    told = resolve;
  });
  const options = { ...byId, leaseMs: 1_000, storeTimeoutMs: 200 };
  const processor = handleOnce(instance(), options, async (job, { signal }) => {
    await redis.set(`bull:${job.queueName}:${job.id}:lock`, "somebody else");
    signal.addEventListener("abort", () => told?.(signal.reason), { once: true });
    await heard;
    return 1;
  });
  const { queue } = await queueWith(processor);
  await queue.add("order", { id: "o1" });
  expect(await heard).toMatchObject({ message: "The lock of the job was lost." });
});
