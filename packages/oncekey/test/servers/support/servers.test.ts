import { Cluster, Redis } from "ioredis";
import mysql from "mysql2/promise";
import pg from "pg";
import { expect, test } from "vitest";
import { ask } from "../../../../../scripts/services/wire.mjs";
import {
  mariadbUrl,
  natsUrl,
  ownServer,
  postgresUrl,
  rabbitmqUrl,
  redisClusterUrls,
  redisUrl,
} from "./servers.js";

const [redis, cluster, postgres, mariadb, rabbitmq, nats] = await Promise.all([
  redisUrl(),
  redisClusterUrls(),
  postgresUrl(),
  mariadbUrl(),
  rabbitmqUrl(),
  natsUrl(),
]);

test("Redis answers, in a database that is empty", async () => {
  const client = new Redis(redis);
  expect(await client.dbsize()).toBe(0);
  await client.quit();
});

test("the cluster has three nodes that hold all slots between them", async () => {
  expect(cluster).toHaveLength(3);
  const client = new Cluster([...cluster]);
  for (let n = 0; n < 30; n += 1) await client.set(`a-${n}`, n, "PX", 1000);
  expect(client.nodes("master")).toHaveLength(3);
  await client.quit();
});

test("Postgres answers, in a database of this file", async () => {
  const client = new pg.Client({ connectionString: postgres });
  await client.connect();
  const { rows } = await client.query("select current_database() as name");
  expect(rows[0].name).toMatch(/^oncekey_/);
  await client.end();
  expect(await postgresUrl()).not.toBe(postgres);
});

test("MariaDB answers, in a database of this file", async () => {
  const connection = await mysql.createConnection(mariadb);
  const [rows] = await connection.query("select database() as name, version() as version");
  expect(rows).toMatchObject([
    { name: expect.stringMatching(/^oncekey_/), version: expect.stringMatching(/MariaDB/) },
  ]);
  await connection.end();
});

test("RabbitMQ answers with its first frame, NATS with what it can do", async () => {
  const [frame] = await ask(Number(new URL(rabbitmq).port), "AMQP\0\0\x09\x01");
  expect(frame).toBe(1);
  const greeting = await ask(Number(new URL(nats).port), "");
  expect(greeting.toString()).toMatch(/^INFO .*"jetstream":true/);
});

test("a server of one's own keeps its address and what it was told to keep over a crash, and stands still on demand", async () => {
  const server = await ownServer("redis", { settings: { appendonly: "yes", appendfsync: "always" } });
  const client = new Redis(server.url, { retryStrategy: () => 20, maxRetriesPerRequest: null });
  await client.set("a", "1");
  await server.stop("SIGKILL");
  await server.start();
  expect(await client.get("a")).toBe("1");

  await server.pause();
  let answered = false;
  const late = client.get("a").then(() => {
    answered = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(answered).toBe(false);
  await server.resume();
  await late;

  client.disconnect();
  await server.close();
});

test("a Postgres of one's own stands still with its connections", async () => {
  const server = await ownServer("postgres");
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await server.pause();
  let answered = false;
  const late = client.query("select 1").then(() => {
    answered = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(answered).toBe(false);
  await server.resume();
  await late;
  await client.end();
  await server.close();
});
