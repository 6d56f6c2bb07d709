/**
 * @module
 * First requests (claim + complete) and replays per second on Postgres, beside two round trips written by hand; and what
 * exactly-once costs in two commits, beside claim, work and completion as three.
 *
 * The floor does with the same client, on the same server and in the same run, what one would write without a library: one
 * `INSERT … ON CONFLICT` and one `UPDATE` for each request, each its own commit, no fingerprint compared, no lease, no token.
 * The server waits for its disk. Look at the ratios rather than at the absolute numbers.
 *
 * `node postgres.bench.mjs [rounds]`. The server is started for it, or is the one that `ONCEKEY_TEST_POSTGRES_URL` names.
 */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { fromPg, fromPostgresJs, postgresStore } from "oncekey/stores/postgres";
import { Pool } from "pg";
import postgres from "postgres";
import { startServer } from "../scripts/services.mjs";
import { inTurns, median, ratio } from "./lib/measure.mjs";
import { section, table } from "./lib/report.mjs";

const rounds = Number(process.argv[2] ?? 3);
const CALLERS = 64;
const REQUESTS = 6_000;
const WARM_UP = 500;
const HEAD = '[201,[["content-type","application/json"],["location","/payments/1"]]]';
const BODY = randomBytes(1_024);

const given = process.env.ONCEKEY_TEST_POSTGRES_URL;
const server = given === undefined ? await startServer("postgres", { settings: { fsync: "on" } }) : undefined;
const url = server?.url ?? given;
const admin = new Pool({ connectionString: url, max: 1 });
let made = 0;

function identity() {
  made += 1;
  return {
    key: createHash("sha256").update(`key ${made}`).digest("base64url"),
    scopeId: "scope",
    operation: "POST /payments",
    label: undefined,
    token: randomUUID(),
    fingerprint: `v1:${createHash("sha256").update(`body ${made}`).digest("base64url")}`,
    guarantee: "at-least-once",
    onLapse: "takeover",
    leaseMs: 30_000,
    retentionMs: 86_400_000,
    maxAttempts: undefined,
  };
}

/** Lets all callers go through `requests`, and says how many per second and how long one took. */
async function measure(requests, one) {
  const latencies = [];
  const queue = requests.values();
  const beganMs = performance.now();
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      for (const request of queue) {
        const atMs = performance.now();
        await one(request);
        latencies.push(performance.now() - atMs);
      }
    }),
  );
  const tookMs = performance.now() - beganMs;
  latencies.sort((a, b) => a - b);
  return {
    perSecond: (requests.length / tookMs) * 1_000,
    p50Ms: latencies[Math.floor(latencies.length / 2)],
    p99Ms: latencies[Math.floor(latencies.length * 0.99)],
  };
}

async function warmAndMeasure(one) {
  await measure(Array.from({ length: WARM_UP }, identity), one);
  const requests = Array.from({ length: REQUESTS }, identity);
  return { result: await measure(requests, one), requests };
}

/** What one would write by hand, with the pool's ten connections. */
async function byHand(isExactlyOnce) {
  await admin.query("DROP TABLE IF EXISTS claims; DROP TABLE IF EXISTS payments");
  await admin.query(
    "CREATE TABLE claims (key text PRIMARY KEY, state text NOT NULL, head text, body bytea, created_at timestamptz NOT NULL DEFAULT now())",
  );
  await admin.query("CREATE TABLE payments (id text NOT NULL)");
  const pool = new Pool({ connectionString: url, max: 10 });
  const claim = async ({ key }) => {
    const { rowCount } = await pool.query({
      name: "claim",
      text: "INSERT INTO claims (key, state) VALUES ($1, 'claimed') ON CONFLICT (key) DO NOTHING",
      values: [key],
    });
    return rowCount === 1;
  };
  const complete = ({ key }) =>
    pool.query({
      name: "complete",
      text: "UPDATE claims SET state = 'completed', head = $2, body = $3 WHERE key = $1",
      values: [key, HEAD, BODY],
    });
  const first = await warmAndMeasure(async (request) => {
    if (!(await claim(request))) throw new Error("A first claim was refused");
    if (isExactlyOnce) await pool.query({ name: "work", text: WORK, values: [request.key] });
    await complete(request);
  });
  const replay = await measure(first.requests, async ({ key }) => {
    const { rows } = await pool.query({
      name: "read",
      text: "SELECT state, head, body FROM claims WHERE key = $1",
      values: [key],
    });
    if (rows[0]?.state !== "completed") throw new Error("A repeat was not completed");
  });
  await pool.end();
  return { first: first.result, replay };
}

const WORK = "INSERT INTO payments (id) VALUES ($1)";

async function withStore(driver, measureStore) {
  await admin.query("DROP TABLE IF EXISTS oncekey_records, oncekey_migrations, payments");
  await admin.query("CREATE TABLE payments (id text NOT NULL)");
  const store = postgresStore(driver);
  await store.migrate();
  try {
    return await measureStore(store);
  } finally {
    await store.close();
  }
}

function oncekey(driver) {
  return withStore(driver, async (store) => {
    const first = await warmAndMeasure(async (request) => {
      const { kind } = await store.claim(request);
      if (kind !== "claimed") throw new Error(`A first claim was ${kind}`);
      await store.complete({ ...request, attempt: 1, outcome: { head: HEAD, body: BODY } });
    });
    const replay = await measure(first.requests, async (request) => {
      const { kind } = await store.claim({ ...request, token: randomUUID() });
      if (kind !== "completed") throw new Error(`A repeat was ${kind}`);
    });
    return { first: first.result, replay };
  });
}

function exactlyOnce(driver) {
  return withStore(driver, async (store) => {
    const first = await warmAndMeasure(async (request) => {
      await store.claim({ ...request, guarantee: "exactly-once" });
      const session = store.begin({ ...request, attempt: 1, maxTransactionMs: 5_000 });
      await session.handle.query({ name: "work", text: WORK, values: [request.key] });
      const { kind } = await session.commit({ head: HEAD, body: BODY }, "everything");
      if (kind !== "committed") throw new Error(`A commit was ${kind}`);
    });
    return { first: first.result };
  });
}

/** The same store, each of the three committed by itself. */
function inThreeCommits(driver, pool) {
  return withStore(driver, async (store) => {
    const first = await warmAndMeasure(async (request) => {
      await store.claim(request);
      await pool.query({ name: "work", text: WORK, values: [request.key] });
      await store.complete({ ...request, attempt: 1, outcome: { head: HEAD, body: BODY } });
    });
    return { first: first.result };
  });
}

const pool = new Pool({ connectionString: url, max: 10 });
const pg = fromPg(pool);
const postgresJs = fromPostgresJs((settings) => postgres(url, { ...settings }));

async function compare(title, base, variants, figures) {
  const names = [...variants.keys()];
  const results = await inTurns(names, rounds, (name) => variants.get(name)());
  section(`${title}: ${CALLERS} callers, ${REQUESTS} requests of ${BODY.length} bytes, ${rounds} rounds`);
  const row = (name) => {
    const own = results.get(name);
    return [
      name,
      ...figures.flatMap((figure) => [
        Math.round(median(own.map((result) => result[figure].perSecond))),
        ratio(results, name, base, (result) => result[figure].perSecond).toFixed(2),
        median(own.map((result) => result[figure].p50Ms)).toFixed(1),
        median(own.map((result) => result[figure].p99Ms)).toFixed(1),
      ]),
    ];
  };
  const head = figures.flatMap((figure) => [`${figure}/s`, "÷ by hand", "p50 ms", "p99 ms"]);
  table(["", ...head], names.map(row));
}

const BY_HAND = "by hand, two round trips on pg";
await compare(
  "Postgres, at least once",
  BY_HAND,
  new Map([
    [BY_HAND, () => byHand(false)],
    ["oncekey on pg", () => oncekey(pg)],
    ["oncekey on postgres.js", () => oncekey(postgresJs)],
  ]),
  ["first", "replay"],
);

const THREE = "by hand, three commits on pg";
await compare(
  "Postgres, with rows of the work",
  THREE,
  new Map([
    [THREE, () => byHand(true)],
    ["oncekey, at least once, three commits", () => inThreeCommits(pg, pool)],
    ["oncekey, exactly once, two commits", () => exactlyOnce(pg)],
  ]),
  ["first"],
);

await pool.end();
await admin.end();
await server?.close();
