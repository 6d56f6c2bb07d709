/** What only pg-boss has: batches that fail whole, and a database that the records and the effects can share. */
import { createIdempotency } from "oncekey";
import { handleOnce, type PgBossJob } from "oncekey/consumers/pg-boss";
import { memoryStore } from "oncekey/stores/memory";
import { fromPg, postgresStore } from "oncekey/stores/postgres";
import { Pool } from "pg";
import PgBoss from "pg-boss";
import { afterAll, beforeAll, expect, it } from "vitest";
import { postgresUrl, uniquePrefix } from "../support/servers.js";

interface Order {
  readonly id: string;
}

const url = await postgresUrl();
const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false, max: 4 });
const pool = new Pool({ connectionString: url, max: 4 });
boss.on("error", () => undefined);
beforeAll(async () => {
  await boss.start();
});
afterAll(async () => {
  await boss.stop({ graceful: false });
  await pool.end();
});

const byId = { consumer: "billing", key: (job: PgBossJob<Order>) => job.data.id };

async function queueOf(orders: readonly Order[], retryLimit = 5): Promise<string> {
  const name = uniquePrefix();
  await boss.createQueue(name);
  for (const order of orders) await boss.send(name, order, { retryLimit });
  return name;
}

it("completes what is done of a batch, whatever becomes of the rest, which comes again", async () => {
  const queue = await queueOf([{ id: "a" }, { id: "b" }, { id: "c" }]);
  const runs: string[] = [];
  const handle = handleOnce(createIdempotency({ store: memoryStore() }), boss, byId, ({ data }) => {
    runs.push(data.id);
    if (data.id === "b" && runs.filter((id) => id === "b").length === 1) throw new Error("declined");
    return data.id;
  });
  await boss.work<Order>(queue, { batchSize: 3, pollingIntervalSeconds: 0.5 }, handle);
  await expect.poll(() => boss.getQueueSize(queue, { before: "completed" }), { timeout: 10_000 }).toBe(0);
  expect(runs.toSorted()).toEqual(["a", "b", "b", "c"]);
  await boss.offWork(queue);
});

it("leaves a dead letter without a queue to the retries of pg-boss and its own dead-letter queue", async () => {
  const dead = await queueOf([]);
  const queue = uniquePrefix();
  await boss.createQueue(queue, { name: queue, deadLetter: dead, retryLimit: 1 });
  await boss.send(queue, { other: "no id" });
  const handle = handleOnce(createIdempotency({ store: memoryStore() }), boss, byId, () => undefined);
  await boss.work<Order>(queue, { pollingIntervalSeconds: 0.5 }, handle);
  await expect.poll(() => boss.getQueueSize(dead), { timeout: 10_000 }).toBe(1);
  await boss.offWork(queue);
});

it("is an inbox: the rows and the word that the job is done commit together", async () => {
  const table = `charges_${uniquePrefix().replaceAll("-", "_")}`;
  await pool.query(`create table ${table} (order_id text not null)`);
  const store = postgresStore(fromPg(pool));
  await store.migrate();
  const idempotency = createIdempotency({ store, guarantee: "exactly-once" });
  let runs = 0;
  const handle = handleOnce(idempotency, boss, byId, async ({ data }, { transaction }) => {
    await transaction.query(`insert into ${table} (order_id) values ($1)`, [data.id]);
    runs += 1;
    if (runs === 1) throw new Error("after the row was written");
  });
  const queue = await queueOf([{ id: table }, { id: table }]);
  await boss.work<Order>(queue, { batchSize: 2, pollingIntervalSeconds: 0.5 }, handle);
  await expect.poll(() => boss.getQueueSize(queue, { before: "completed" }), { timeout: 10_000 }).toBe(0);
  await boss.offWork(queue);
  const { rows } = await pool.query(`select order_id from ${table}`);
  expect(rows).toEqual([{ order_id: table }]);
  expect(runs).toBe(2);
  await store.close();
});
