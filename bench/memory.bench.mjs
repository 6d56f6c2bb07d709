/**
 * @module
 * The memory store by itself: time per call, memory per record, and the longest pauses while a million records
 * come, expire and go.
 *
 * Each number stands beside that of a bare `Map` that keeps the same answers in the same run, which shows what
 * of it is the machine's (its memory, its garbage collector) and what the store's.
 *
 * `node --expose-gc memory.bench.mjs [records]`.
 */
import { createHash, randomBytes } from "node:crypto";
import { PerformanceObserver } from "node:perf_hooks";
import { systemClock } from "oncekey";
import { memoryStore } from "oncekey/stores/memory";
import { section, table } from "./lib/report.mjs";

const records = Number(process.argv[2] ?? 1_000_000);
const ANSWER_BYTES = 1_024;
const RETENTION_MS = 86_400_000;
/** Work between two turns of the event loop, as a busy server has it. */
const TURN_MS = 1;
const HEAD = '[201,[["content-type","application/json"],["location","/payments/1"]]]';
const answer = randomBytes(ANSWER_BYTES);

function requestOf(index) {
  const digest = createHash("sha256").update(String(index)).digest("base64url");
  return {
    key: digest,
    scopeId: `scope ${index % 100}`,
    operation: "POST /payments",
    label: undefined,
    token: `${digest.slice(0, 12)}-${index.toString(36)}`,
    fingerprint: `v1:${digest}`,
    guarantee: "at-least-once",
    onLapse: "takeover",
    leaseMs: 30_000,
    retentionMs: RETENTION_MS,
    maxAttempts: undefined,
  };
}

/** The platform's clock, which can be set forward, so that a day's retention ends at once. */
function adjustableClock() {
  let aheadMs = 0;
  return {
    now: () => systemClock.now() + aheadMs,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    // Whoever waits for tomorrow looks again soon.
    setTimer: (wake, delayMs, keepAlive) => systemClock.setTimer(wake, Math.min(delayMs, 50), keepAlive),
    setForward(ms) {
      aheadMs += ms;
    },
  };
}

function storeSubject() {
  const clock = adjustableClock();
  const bounds = { maxRecords: records, maxRecordsPerScope: records, maxBytes: records * 2 * ANSWER_BYTES };
  const store = memoryStore({ ...bounds, clock, sweepIntervalMs: 10 });
  return {
    async first(index) {
      const request = requestOf(index);
      await store.claim(request);
      await store.complete({ ...request, attempt: 1, outcome: { head: HEAD, body: answer } });
    },
    repeat: (index) => store.claim({ ...requestOf(index), token: "repeat" }),
    expire: () => clock.setForward(RETENTION_MS + 60_000),
    async left() {
      return (await store.list({ limit: 1 })).records.length + (await store.purge(0));
    },
    close: () => store.close(),
  };
}

function mapSubject() {
  const map = new Map();
  return {
    first(index) {
      const { key, fingerprint } = requestOf(index);
      map.set(key, { fingerprint, status: 0, body: undefined });
      Object.assign(map.get(key), { status: 201, body: Buffer.from(answer) });
    },
    repeat: (index) => map.get(requestOf(index).key),
    expire: () => map.clear(),
    left: () => map.size,
    close: () => map.clear(),
  };
}

/** The longest time between two turns of the event loop, and the longest collection of garbage, since the last look. */
function watchPauses() {
  let longestMs = 0;
  let lastMs = performance.now();
  let longestGcMs = 0;
  let stopped = false;
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longestGcMs = Math.max(longestGcMs, duration);
  });
  observer.observe({ entryTypes: ["gc"] });
  const turn = () => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
    if (!stopped) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    look() {
      const seen = { longestMs, longestGcMs };
      longestMs = 0;
      longestGcMs = 0;
      return seen;
    },
    stop() {
      stopped = true;
      observer.disconnect();
    },
  };
}

const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Calls `work` for each index, giving the event loop back every millisecond. */
async function inTurns(count, work) {
  for (let index = 0; index < count; ) {
    const untilMs = performance.now() + TURN_MS;
    while (index < count && performance.now() < untilMs) await work(index++);
    await nextTurn();
  }
}

async function bytesInUse() {
  globalThis.gc?.();
  await nextTurn();
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

async function pausesOf(subject) {
  const before = await bytesInUse();
  const pauses = watchPauses();
  await inTurns(records, subject.first);
  await nextTurn();
  const filling = pauses.look();
  const perRecord = (await bytesInUse()) - before;
  // What the two collections just asked for have cost is told a little later.
  await later(200);
  pauses.look();
  subject.expire();
  const goneBy = performance.now() + 5_000;
  while (performance.now() < goneBy) await nextTurn();
  const expiring = pauses.look();
  pauses.stop();
  await subject.close();
  return { filling, expiring, bytesPerRecord: perRecord / records - ANSWER_BYTES };
}

/** Microseconds per call, requests made beforehand not included. */
async function timesOf(make) {
  const count = 100_000;
  const started = performance.now();
  for (let index = 0; index < count; index++) requestOf(index);
  const makingMs = performance.now() - started;
  const subject = make();
  const firstAt = performance.now();
  for (let index = 0; index < count; index++) await subject.first(index);
  const repeatAt = performance.now();
  for (let index = 0; index < count; index++) await subject.repeat(index);
  const endAt = performance.now();
  await subject.close();
  const perCall = (ms) => ((ms - makingMs) / count) * 1_000;
  return { first: perCall(repeatAt - firstAt), repeat: perCall(endAt - repeatAt) };
}

const subjects = { "bare Map": mapSubject, memoryStore: storeSubject };

section("Time per call, in µs (the best of five)");
const times = [];
for (const [name, make] of Object.entries(subjects)) {
  const runs = [];
  for (let round = 0; round < 5; round++) runs.push(await timesOf(make));
  const best = (what) => Math.min(...runs.map((run) => run[what])).toFixed(1);
  times.push([name, best("first"), best("repeat")]);
}
table(["", "first request (claim + complete)", "repeat"], times);

section(`${records.toLocaleString("en")} records with an answer of ${ANSWER_BYTES} bytes`);
const rows = [];
for (const [name, make] of Object.entries(subjects)) {
  const { filling, expiring, bytesPerRecord } = await pausesOf(make());
  const ms = ({ longestMs, longestGcMs }) => `${longestMs.toFixed(1)} (${longestGcMs.toFixed(1)})`;
  rows.push([name, Math.round(bytesPerRecord), ms(filling), ms(expiring)]);
}
table(
  [
    "",
    "bytes per record beside its answer",
    "longest pause while filling, ms (of the garbage collector)",
    "while expiring, ms",
  ],
  rows,
);
