/**
 * @module
 * First requests (claim + complete) and replays per second on a SQLite file, beside a floor written by hand.
 *
 * The floor does with the same client, on the same disk and in the same run, what one would write without a
 * library: one INSERT and one UPDATE for each request, each its own transaction, no fingerprint compared, no
 * lease, no token. It is synchronous, so it has no concurrency. Look at the ratios rather than at the absolute
 * numbers, which are the disk's.
 *
 * `node sqlite.bench.mjs [rounds]`.
 */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { fromLibsql, sqliteStore } from "oncekey/stores/sqlite";
import { inTurns, median, ratio } from "./lib/measure.mjs";
import { section, table } from "./lib/report.mjs";

const rounds = Number(process.argv[2] ?? 3);
const PAIRS = 3_000;
const CONCURRENCY = [1, 16, 64, 256];
const HEAD = '[201,[["content-type","application/json"],["location","/payments/1"]]]';
const BODY = randomBytes(1_024);

function identity(index) {
  return {
    key: createHash("sha256").update(`key ${index}`).digest("base64url"),
    scopeId: "scope",
    operation: "POST /payments",
    label: undefined,
    token: randomUUID(),
    fingerprint: `v1:${createHash("sha256").update(`body ${index}`).digest("base64url")}`,
    guarantee: "at-least-once",
    onLapse: "takeover",
    leaseMs: 30_000,
    retentionMs: 86_400_000,
    maxAttempts: undefined,
  };
}

async function onFreshFile(measure) {
  const folder = mkdtempSync(join(tmpdir(), "oncekey-bench-"));
  try {
    return await measure(join(folder, "bench.db"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function rateOf(work) {
  const startedAt = performance.now();
  await work();
  return (PAIRS / (performance.now() - startedAt)) * 1_000;
}

function floor(synchronous) {
  return onFreshFile(async (path) => {
    const database = new Database(path);
    database.exec(`PRAGMA journal_mode = wal; PRAGMA synchronous = ${synchronous}`);
    database.exec("CREATE TABLE claims (key TEXT PRIMARY KEY, state TEXT NOT NULL, head TEXT, body BLOB)");
    const claim = database.prepare(
      "INSERT INTO claims (key, state) VALUES (?, 'claimed') ON CONFLICT DO NOTHING",
    );
    const complete = database.prepare(
      "UPDATE claims SET state = 'completed', head = ?, body = ? WHERE key = ?",
    );
    const read = database.prepare("SELECT state, head, body FROM claims WHERE key = ?");
    const identities = Array.from({ length: PAIRS }, (_, index) => identity(index));
    const first = await rateOf(() => {
      for (const { key } of identities) {
        claim.run([key]);
        complete.run([HEAD, BODY, key]);
      }
    });
    const replay = await rateOf(() => {
      for (const { key } of identities) read.get([key]);
    });
    database.close();
    return { first, replay };
  });
}

function store(synchronous, concurrency) {
  return onFreshFile(async (path) => {
    const subject = sqliteStore(
      fromLibsql(() => new Database(path)),
      { synchronous },
    );
    const identities = Array.from({ length: PAIRS }, (_, index) => identity(index));
    await subject.claim({ ...identity(-1) });
    const all = async (one) => {
      const queue = identities.values();
      const worker = async () => {
        for (const request of queue) await one(request);
      };
      await Promise.all(Array.from({ length: concurrency }, worker));
    };
    const first = await rateOf(() =>
      all(async (request) => {
        const { kind } = await subject.claim(request);
        if (kind !== "claimed") throw new Error(`A first claim was ${kind}`);
        await subject.complete({ ...request, attempt: 1, outcome: { head: HEAD, body: BODY } });
      }),
    );
    const replay = await rateOf(() =>
      all(async (request) => {
        const { kind } = await subject.claim({ ...request, token: randomUUID() });
        if (kind !== "completed") throw new Error(`A repeat was ${kind}`);
      }),
    );
    await subject.close();
    return { first, replay };
  });
}

for (const synchronous of ["full", "normal"]) {
  const byHand = "by hand, one at a time";
  const variants = new Map([[byHand, () => floor(synchronous)]]);
  for (const concurrency of CONCURRENCY) {
    variants.set(`oncekey, ${concurrency} at once`, () => store(synchronous, concurrency));
  }
  const results = await inTurns([...variants.keys()], rounds, (name) => variants.get(name)());
  section(
    `SQLite, synchronous = ${synchronous}: ${PAIRS} requests of ${BODY.length} bytes, ${rounds} rounds`,
  );
  const row = (name) => {
    const own = results.get(name);
    const figures = ["first", "replay"].flatMap((figure) => [
      Math.round(median(own.map((rates) => rates[figure]))),
      ratio(results, name, byHand, (rates) => rates[figure]).toFixed(2),
    ]);
    return [name, ...figures];
  };
  table(["", "first/s", "÷ by hand", "replays/s", "÷ read by hand"], [...variants.keys()].map(row));
}
