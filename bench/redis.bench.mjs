/**
 * @module
 * First requests (claim + complete) and replays per second on Redis, beside a floor written by hand with the same client.
 *
 * The floor is what one would write without a library, in two commands: `SET key token NX PX` and `SET key answer XX PX`, and a
 * `GET` for a replay; no fingerprint compared, no token checked, no wake-up. Each variant has a connection of its own to one
 * server, and they take turns. Look at the ratios.
 *
 * `node redis.bench.mjs [rounds] [requests]`; the server is `ONCEKEY_TEST_REDIS_URL`, or one that is started for this.
 */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { fromIoredis, fromNodeRedis, redisStore } from "oncekey/stores/redis";
import { createClient } from "redis";
import { startServer } from "../scripts/services.mjs";
import { inTurns, median, ratio } from "./lib/measure.mjs";
import { section, table } from "./lib/report.mjs";

const rounds = Number(process.argv[2] ?? 5);
const REQUESTS = Number(process.argv[3] ?? 20_000);
const CALLERS = 64;
const LEASE_MS = 30_000;
const RETENTION_MS = 86_400_000;
const HEAD = '[201,[["content-type","application/json"],["location","/payments/1"]]]';
const BODY = Buffer.from(randomBytes(768).toString("base64"));
/** What the floor stores: the same answer, as one text. */
const ANSWER = JSON.stringify({ head: HEAD, body: BODY.toString() });

const given = process.env.ONCEKEY_TEST_REDIS_URL;
const server = given === undefined ? await startServer("redis") : { url: given, close: async () => {} };
const { url } = server;

/** Names of records as the core makes them: a digest each. */
function identities() {
  const round = randomUUID();
  return Array.from({ length: REQUESTS }, (_, index) => ({
    key: createHash("sha256").update(`${round} ${index}`).digest("base64url"),
    scopeId: createHash("sha256").update("scope").digest("base64url"),
    operation: "POST /payments",
    label: undefined,
    token: `${round.replaceAll("-", "")}-${index.toString(36)}`,
    fingerprint: `v1:${createHash("sha256").update(`body ${index}`).digest("base64url")}`,
    guarantee: "at-least-once",
    onLapse: "takeover",
    leaseMs: LEASE_MS,
    retentionMs: RETENTION_MS,
    maxAttempts: undefined,
  }));
}

/** Calls `one` for each request, 64 at a time; requests per second. */
async function rateOf(requests, one) {
  const queue = requests.values();
  const caller = async () => {
    for (const request of queue) await one(request);
  };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return (requests.length / (performance.now() - startedAt)) * 1_000;
}

function ioredisFloor() {
  const redis = new Redis(url);
  return {
    claim: async ({ key, token }) => (await redis.set(`floor:${key}`, token, "PX", LEASE_MS, "NX")) === "OK",
    complete: async ({ key }) => (await redis.set(`floor:${key}`, ANSWER, "PX", RETENTION_MS, "XX")) === "OK",
    replay: async ({ key }) => JSON.parse(await redis.get(`floor:${key}`)).body.length > 0,
    close: () => redis.disconnect(),
  };
}

async function nodeRedisFloor() {
  const client = await createClient({ url }).connect();
  const set = (key, value, condition, ms) =>
    client.set(key, value, { condition, expiration: { type: "PX", value: ms } });
  return {
    claim: async ({ key, token }) => (await set(`floor:${key}`, token, "NX", LEASE_MS)) === "OK",
    complete: async ({ key }) => (await set(`floor:${key}`, ANSWER, "XX", RETENTION_MS)) === "OK",
    replay: async ({ key }) => JSON.parse(await client.get(`floor:${key}`)).body.length > 0,
    close: () => client.destroy(),
  };
}

async function oncekey(driver) {
  const store = redisStore(driver);
  await store.ready();
  const outcome = { head: HEAD, body: BODY };
  return {
    claim: async (request) => (await store.claim(request)).kind === "claimed",
    complete: async (request) =>
      (await store.complete({ ...request, attempt: 1, outcome })).kind === "completed",
    replay: async (request) => (await store.claim({ ...request, token: "another" })).kind === "completed",
    close: () => store.close(),
  };
}

const variants = {
  "ioredis, by hand": ioredisFloor,
  "oncekey, ioredis": () => oncekey(fromIoredis(new Redis(url, { lazyConnect: true }))),
  "node-redis, by hand": nodeRedisFloor,
  "oncekey, node-redis": () => oncekey(fromNodeRedis(createClient({ url }))),
};

async function measure(name) {
  const variant = await variants[name]();
  const must = (what, call) => async (request) => {
    if (!(await call(request))) throw new Error(`${name}: ${what} was refused`);
  };
  const claim = must("a first claim", variant.claim);
  const complete = must("a completion", variant.complete);
  const warm = identities().slice(0, 2_000);
  await rateOf(warm, claim);
  await rateOf(warm, complete);
  await rateOf(warm, must("a replay", variant.replay));
  const requests = identities();
  const first = await rateOf(requests, async (request) => {
    await claim(request);
    await complete(request);
  });
  const replay = await rateOf(requests, must("a replay", variant.replay));
  await variant.close();
  return { first, replay };
}

const names = Object.keys(variants);
const results = await inTurns(names, rounds, measure);
section(`Redis: ${REQUESTS} requests of ${BODY.length} bytes, ${CALLERS} callers, ${rounds} rounds`);
table(
  ["", "first/s", "÷ by hand", "replays/s", "÷ by hand"],
  names.map((name, index) => {
    const byHand = names[index - (index % 2)];
    const own = results.get(name);
    return [
      name,
      ...["first", "replay"].flatMap((figure) => [
        Math.round(median(own.map((rates) => rates[figure]))),
        ratio(results, name, byHand, (rates) => rates[figure]).toFixed(2),
      ]),
    ];
  }),
);
await server.close();
