/**
 * @module
 * First requests (claim + complete) and replays per second on MariaDB, beside two round trips written by hand; and what
 * exactly-once costs in two commits, beside claim, work and completion as three.
 *
 * The floor does with the same client, on the same server and in the same run, what one would write without a library: one
 * `INSERT IGNORE` and one `UPDATE` for each request, each its own commit, no fingerprint compared, no lease, no token.
 * The server waits for its disk. Look at the ratios rather than at the absolute numbers.
 *
 * `node mysql.bench.mjs [rounds]`. The server is started for it, or is the one that `ONCEKEY_TEST_MARIADB_URL` names.
 */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import mysql from "mysql2/promise";
import { fromMysql2, mysqlStore } from "oncekey/stores/mysql";
import { startServer } from "../scripts/services.mjs";
import { inTurns, median, ratio } from "./lib/measure.mjs";
import { section, table } from "./lib/report.mjs";

const rounds = Number(process.argv[2] ?? 3);
const CALLERS = 64;
const REQUESTS = 6_000;
const WARM_UP = 500;
const HEAD = '[201,[["content-type","application/json"],["location","/payments/1"]]]';
const BODY = randomBytes(1_024);

const given = process.env.ONCEKEY_TEST_MARIADB_URL;
const settings = { "innodb-flush-log-at-trx-commit": "1" };
const server = given === undefined ? await startServer("mariadb", { settings }) : undefined;
const url = server?.url ?? given;
const admin = mysql.createPool({ uri: url, connectionLimit: 1, multipleStatements: true });
await admin.query("CREATE DATABASE IF NOT EXISTS oncekey_bench");
const inBench = new URL(url);
inBench.pathname = "/oncekey_bench";
const poolOf = () => mysql.createPool({ uri: inBench.href, connectionLimit: 10 });
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
  await admin.query(`USE oncekey_bench; DROP TABLE IF EXISTS claims, payments;
    CREATE TABLE claims (id VARCHAR(64) PRIMARY KEY, state VARCHAR(16) NOT NULL, head TEXT, body LONGBLOB,
      created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB;
    CREATE TABLE payments (id VARCHAR(64) NOT NULL) ENGINE=InnoDB`);
  const pool = poolOf();
  const first = await warmAndMeasure(async ({ key }) => {
    const [{ affectedRows }] = await pool.execute(
      "INSERT IGNORE INTO claims (id, state) VALUES (?, 'claimed')",
      [key],
    );
    if (affectedRows !== 1) throw new Error("A first claim was refused");
    if (isExactlyOnce) await pool.execute(WORK, [key]);
    await pool.execute("UPDATE claims SET state = 'completed', head = ?, body = ? WHERE id = ?", [
      HEAD,
      BODY,
      key,
    ]);
  });
  const replay = await measure(first.requests, async ({ key }) => {
    const [rows] = await pool.execute("SELECT state, head, body FROM claims WHERE id = ?", [key]);
    if (rows[0]?.state !== "completed") throw new Error("A repeat was not completed");
  });
  await pool.end();
  return { first: first.result, replay };
}

const WORK = "INSERT INTO payments (id) VALUES (?)";

async function withStore(measureStore) {
  await admin.query(`USE oncekey_bench; DROP TABLE IF EXISTS oncekey_records, oncekey_migrations, payments;
    CREATE TABLE payments (id VARCHAR(64) NOT NULL) ENGINE=InnoDB`);
  const store = mysqlStore(fromMysql2(pool));
  await store.migrate();
  try {
    return await measureStore(store);
  } finally {
    await store.close();
  }
}

function oncekey() {
  return withStore(async (store) => {
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

function exactlyOnce() {
  return withStore(async (store) => {
    const first = await warmAndMeasure(async (request) => {
      await store.claim({ ...request, guarantee: "exactly-once" });
      const session = store.begin({ ...request, attempt: 1, maxTransactionMs: 5_000 });
      await session.handle.execute(WORK, [request.key]);
      const { kind } = await session.commit({ head: HEAD, body: BODY }, "everything");
      if (kind !== "committed") throw new Error(`A commit was ${kind}`);
    });
    return { first: first.result };
  });
}

/** The same store, each of the three committed by itself. */
function inThreeCommits() {
  return withStore(async (store) => {
    const first = await warmAndMeasure(async (request) => {
      await store.claim(request);
      await pool.execute(WORK, [request.key]);
      await store.complete({ ...request, attempt: 1, outcome: { head: HEAD, body: BODY } });
    });
    return { first: first.result };
  });
}

const pool = poolOf();

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

const BY_HAND = "by hand, two round trips on mysql2";
await compare(
  "MariaDB, at least once",
  BY_HAND,
  new Map([
    [BY_HAND, () => byHand(false)],
    ["oncekey", oncekey],
  ]),
  ["first", "replay"],
);

const THREE = "by hand, three commits on mysql2";
await compare(
  "MariaDB, with rows of the work",
  THREE,
  new Map([
    [THREE, () => byHand(true)],
    ["oncekey, at least once, three commits", inThreeCommits],
    ["oncekey, exactly once, two commits", exactlyOnce],
  ]),
  ["first"],
);

await pool.end();
await admin.end();
await server?.close();
