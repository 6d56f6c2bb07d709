/**
 * @module
 * Four processes, one schedule, one of them killed in the middle of a report, all of them gone for a while. Then it is counted what
 * was sent. The exit code is 0 only if every report was sent once.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isRight, NIGHT_MS, type Night, nightsOf } from "./count.js";
import { type Instance, startInstance } from "./instances.js";
import { type Outbox, type OutboxLine, openOutbox } from "./outbox.js";

const INSTANCES = 4;
const OUTAGE_MS = 5_000;

const mode = process.argv.slice(2);
/** For a machine that is busy; the demo itself takes half a minute. What is lost without oncekey does not come. */
const PATIENCE_MS = mode.includes("--without-oncekey") ? 12_000 : 120_000;
const folder = mkdtempSync(join(tmpdir(), "nightly-report-"));
const outbox = openOutbox(join(folder, "outbox"));
let running: Instance[] = [];
let started = 0;

try {
  const lastMs = await play();
  process.exitCode = judge(nightsOf(outbox.read(), lastMs));
} finally {
  await Promise.all(running.map((instance) => instance.kill()));
  rmSync(folder, { recursive: true, force: true });
}

/** @returns the last planned instant that has to have its report. */
async function play(): Promise<number> {
  say(`${INSTANCES} processes, one schedule: every 2 seconds, that is, every night`);
  await startAll();
  await nextBegun(outbox);

  const begun = await nextBegun(outbox);
  const runner = running.find(({ name }) => name === begun.instance);
  await runner?.kill();
  running = running.filter((instance) => instance !== runner);
  say(`instance ${begun.instance} was killed in the middle of the report of ${timeOf(begun.plannedAt)}`);
  await allSent(outbox, begun.plannedAt + 3 * NIGHT_MS);

  const { plannedAt } = await killAll();
  say(`all instances are gone for ${OUTAGE_MS / 1_000} seconds`);
  await delay(OUTAGE_MS);
  await startAll();
  say(`${INSTANCES} new ones are up, and make up for what was missed`);
  const lastMs = plannedAt + 6 * NIGHT_MS;
  await allSent(outbox, lastMs);
  await killAll();
  return lastMs;
}

/** In the middle of a report: what was sent before it is on record by then. */
async function killAll(): Promise<OutboxLine> {
  const begun = await nextBegun(outbox);
  await Promise.all(running.map((instance) => instance.kill()));
  running = [];
  return begun;
}

async function startAll(): Promise<void> {
  const names = Array.from({ length: INSTANCES }, () => String(++started));
  running = await Promise.all(names.map((name) => startInstance(name, folder, mode)));
}

/** Waits until each planned instant up to this one has a report, or none is to be expected any more: the count will tell. */
async function allSent({ read }: Outbox, lastMs: number): Promise<void> {
  await until(() => nightsOf(read(), lastMs).every(({ sentBy }) => sentBy.length > 0)).catch(() => undefined);
}

/** The next report that an instance begins. */
async function nextBegun({ read }: Outbox): Promise<OutboxLine> {
  const seen = read().length;
  await until(() =>
    read()
      .slice(seen)
      .some(({ kind }) => kind === "begun"),
  );
  return read()
    .slice(seen)
    .find(({ kind }) => kind === "begun") as OutboxLine;
}

async function until(condition: () => boolean): Promise<void> {
  for (let waitedMs = 0; !condition(); waitedMs += 20) {
    if (waitedMs > PATIENCE_MS) throw new Error("what the demo waits for did not happen");
    await delay(20);
  }
}

/** Prints what was sent; the exit code. */
function judge(nights: readonly Night[]): number {
  say("\nplanned    begun by    sent by");
  for (const night of nights) {
    const columns = [timeOf(night.plannedAt), night.begunBy.join(", "), night.sentBy.join(", ")];
    say(`${columns.map((column) => column.padEnd(10)).join(" ")} ${isRight(night) ? "✓" : "✗ wrong"}`);
  }
  const right = nights.filter(isRight).length;
  const sent = nights.reduce((sum, { sentBy }) => sum + sentBy.length, 0);
  if (right === nights.length && nights.length > 0) {
    say(`\nEvery count is right: ${nights.length} reports were planned, ${sent} were sent.`);
    return 0;
  }
  say(`\n${nights.length - right} of ${nights.length} counts are wrong: ${sent} reports were sent.`);
  return 1;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().slice(11, 19);
}
