/**
 * @module test/jobs/workers/job-instance
 *
 * An instance of an application in a process of its own, with one job that its scheduler fires each second:
 * `node job-instance.mjs <settings as JSON>`. It runs the built package, as any other process would, and logs what it does to a file
 * that several instances share, in whole lines. Its parent cuts it off its store and lets it back.
 */
import { appendFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { createIdempotency } from "oncekey";
import { faultyStore } from "oncekey/testing";
import { storeKinds } from "../../servers/faults/apps/stores.mjs";
import { schedulers } from "./schedulers.mjs";

/**
 * @typedef {object} InstanceSettings
 * @property {string} name
 * @property {string} job
 * @property {import("./schedulers.mjs").SchedulerName} scheduler
 * @property {import("../../servers/faults/apps/stores.mjs").StoreName} storeName
 * @property {string} address
 * @property {string} logPath
 * @property {number} leaseMs
 * @property {import("oncekey/testing").JobInstanceOptions} options
 */

/** @type {InstanceSettings} */
const { name, job, scheduler, storeName, address, logPath, leaseMs, options } = JSON.parse(
  process.argv[2] ?? "{}",
);
const { behaviour = {}, clockOffMs = 0, ...jobOptions } = options;
const {
  holdMs = 0,
  heldRuns = Number.POSITIVE_INFINITY,
  hangingAttempts = 0,
  failingAttempts = 0,
} = behaviour;
let runs = 0;
const realNow = Date.now;
if (clockOffMs !== 0) shiftWallClock(clockOffMs);

/** @param {Omit<import("oncekey/testing").JobLine, "instance" | "at">} line */
function log(line) {
  appendFileSync(logPath, `${JSON.stringify({ instance: name, at: realNow(), ...line })}\n`);
}

const { store: reached } = await storeKinds[storeName].open(address);
const store = faultyStore(reached);
const idempotency = createIdempotency({
  store,
  leaseMs,
  onEvent(event) {
    if (event.type === "occurrence")
      log({ kind: "occurrence", plannedAt: event.plannedAtMs, end: event.end });
  },
});

/** @param {import("oncekey/jobs").JobWork} work */
async function run({ plannedAt, attempt }) {
  const line = { plannedAt: plannedAt.getTime(), attempt };
  log({ kind: "start", ...line });
  if (attempt <= hangingAttempts) await new Promise(() => undefined);
  runs += 1;
  if (runs <= heldRuns) await delay(holdMs);
  if (attempt <= failingAttempts) throw new Error("as it was told to");
  log({ kind: "end", ...line });
}

process.on("message", (/** @type {"cut-off" | "reconnect"} */ message) => {
  if (message === "cut-off") store.plan(everyCall());
  else store.heal();
  process.send?.({ heard: message });
});
process.on("disconnect", () => process.exit());

const { start } = schedulers[scheduler];
start(idempotency, { job, ...jobOptions }, run, () => log({ kind: "up" }));
process.send?.({ ready: true });

/** Nothing reaches the store. */
function everyCall() {
  const calls = /** @type {const} */ (["claim", "extend", "complete", "release", "status", "find"]);
  return Object.fromEntries(calls.map((call) => [call, { kind: "reject" }]));
}

/** @param {number} offMs */
function shiftWallClock(offMs) {
  const RealDate = Date;
  globalThis.Date = /** @type {DateConstructor} */ (
    class extends RealDate {
      /** @param {[]} args */
      constructor(...args) {
        if (args.length === 0) super(realNow() + offMs);
        else super(...args);
      }

      /** @override */
      static now() {
        return realNow() + offMs;
      }
    }
  );
}
