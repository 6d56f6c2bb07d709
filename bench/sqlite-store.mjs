/**
 * @module
 * First requests (claim + complete) and replays per second on a SQLite file, beside a floor written by hand.
 *
 * The floor does with the same client, on the same disk and in the same run, what one would write without a
 * library: one INSERT and one UPDATE for each request, each its own transaction, no fingerprint compared, no
 * lease, no token. It is synchronous, so it has no concurrency. Ratios are of the medians of `ROUNDS`
 * interleaved rounds; look at them rather than at the absolute numbers, which are the disk's.
 *
 * `node bench/sqlite-store.mjs [pairs]`, after `npm run build`.
 */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { fromLibsql, sqliteStore } from "oncekey/stores/sqlite";

const PAIRS = Number(process.argv[2] ?? 3_000);
const ROUNDS = 3;
const CONCURRENCY = [1, 16, 64, 256];
const HEAD = '[201,[["content-type","application/json"],["location","/payments/1"]]]';
const BODY = randomBytes(1_024);

/** @typedef {{ readonly first: number, readonly replay: number }} Rates per second */

/** @param {number} index */
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

/** @param {(path: string) => Promise<Rates>} measure */
async function onFreshFile(measure) {
  const folder = mkdtempSync(join(tmpdir(), "oncekey-bench-"));
  try {
    return await measure(join(folder, "bench.db"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {() => void | Promise<void>} work */
async function rateOf(work) {
  const startedAt = performance.now();
  await work();
  return (PAIRS / (performance.now() - startedAt)) * 1_000;
}

/** @param {"full" | "normal"} synchronous */
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

/**
 * @param {"full" | "normal"} synchronous
 * @param {number} concurrency
 */
function store(synchronous, concurrency) {
  return onFreshFile(async (path) => {
    const subject = sqliteStore(
      fromLibsql(() => new Database(path)),
      { synchronous },
    );
    const identities = Array.from({ length: PAIRS }, (_, index) => identity(index));
    await subject.claim({ ...identity(-1) });
    /** @param {(request: ReturnType<typeof identity>) => Promise<void>} one */
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

/** @param {readonly number[]} values */
function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

for (const synchronous of /** @type {const} */ (["full", "normal"])) {
  const variants = [
    { name: "by hand, one at a time", measure: () => floor(synchronous) },
    ...CONCURRENCY.map((concurrency) => ({
      name: `oncekey, ${concurrency} at once`,
      measure: () => store(synchronous, concurrency),
    })),
  ];
  /** @type {Map<string, Rates[]>} */
  const measured = new Map(variants.map(({ name }) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const { name, measure } of variants) measured.get(name)?.push(await measure());
  }
  const rows = [...measured].map(([name, rates]) => ({
    name,
    first: median(rates.map(({ first }) => first)),
    replay: median(rates.map(({ replay }) => replay)),
  }));
  const base = rows[0] ?? { first: Number.NaN, replay: Number.NaN };
  console.log(
    `\nsynchronous = ${synchronous}, ${PAIRS} requests, ${BODY.length} bytes each, median of ${ROUNDS}`,
  );
  console.table(
    Object.fromEntries(
      rows.map(({ name, first, replay }) => [
        name,
        {
          "first/s": Math.round(first),
          "÷ by hand": Number((first / base.first).toFixed(2)),
          "replays/s": Math.round(replay),
          "÷ by hand (read)": Number((replay / base.replay).toFixed(2)),
        },
      ]),
    ),
  );
}
