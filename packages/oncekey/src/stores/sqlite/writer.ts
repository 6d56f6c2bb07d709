/**
 * @module
 * Writing what waits, batch after batch, whenever the file lets us.
 *
 * Invariants: in order; an entry is answered or fails within its time; waiting for the file never blocks the
 * event loop, and between two batches the loop turns once.
 */
import { systemClock } from "../../core/clock.js";
import { type Entry, nextBatch, runBatch } from "./batch.js";
import type { Moment } from "./clocks.js";
import { faultOf, type SqliteConnection } from "./driver.js";
import { busyFor, jitteredMs, monotonicMs, nextTurn, unavailable } from "./pace.js";
import type { Records } from "./statements.js";

export interface Writer {
  /** Not answered yet, in order. */
  waiting(): readonly Entry[];
  /** Takes the entries on. The first batch is written at once if the file is free. */
  add(entries: readonly Entry[]): void;
  /** Writes one batch now, if somebody waits: called when this process's own transaction has ended. */
  writeNow(): void;
}

export interface WriterOptions {
  readonly connection: SqliteConnection;
  readonly records: Records;
  readonly moment: () => Moment;
  /** How long an entry waits for the file, for the message that says so. */
  readonly waitMs: number;
  /** Whether this process holds the write lock in its other connection: trying would be in vain. */
  readonly heldByOurselves: () => boolean;
}

/** @param answered told of entries that wait no more. */
export function createWriter(options: WriterOptions, answered: (entries: readonly Entry[]) => void): Writer {
  const { connection, records, moment, waitMs, heldByOurselves } = options;
  let waiting: Entry[] = [];
  let writing = false;
  let resume: (() => void) | undefined;

  async function write(): Promise<void> {
    writing = true;
    for (let tries = 0; waiting.length > 0; ) tries = await writeOrWait(tries);
    writing = false;
  }

  /** @param tries how often the file was busy in a row; returns the same for the next time. */
  async function writeOrWait(tries: number): Promise<number> {
    const busy = heldByOurselves() ? new Error("An exactly-once transaction is open") : writeBatch();
    if (busy === undefined) {
      await nextTurn();
      return 0;
    }
    failOverdue(busy);
    await pauseUntilResumed(jitteredMs(tries));
    return tries + 1;
  }

  /** Writes or fails the next batch. If the file was busy, nothing has happened, and this is how it said so. */
  function writeBatch(): unknown {
    const batch = nextBatch(waiting);
    try {
      runBatch(connection, records, batch, moment);
    } catch (error) {
      if (faultOf(error) === "busy") return error;
      if (batch.length === 1) batch[0]?.fail(unavailable(error));
      else writeSingly(batch);
    }
    forget(batch.length);
    return undefined;
  }

  /** What stopped a batch may concern only some of it: on a full disk those that change nothing still succeed. */
  function writeSingly(batch: readonly Entry[]): void {
    for (const entry of batch) {
      try {
        runBatch(connection, records, [entry], moment);
      } catch (error) {
        entry.fail(unavailable(error));
      }
    }
  }

  /** All wait equally long, so those whose time is over stand first. */
  function failOverdue(cause: unknown): void {
    const nowMs = monotonicMs();
    const inTime = waiting.findIndex(({ endsAtMs }) => endsAtMs > nowMs);
    for (const entry of forget(inTime === -1 ? waiting.length : inTime)) entry.fail(busyFor(waitMs, cause));
  }

  function forget(count: number): readonly Entry[] {
    const done = waiting.slice(0, count);
    waiting = waiting.slice(count);
    answered(done);
    return done;
  }

  function pauseUntilResumed(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = systemClock.setTimer(() => resume?.(), delayMs);
      resume = () => {
        resume = undefined;
        timer.cancel();
        resolve();
      };
    });
  }

  return {
    waiting: () => waiting,
    add(entries) {
      waiting.push(...entries);
      if (!writing && waiting.length > 0) void write();
    },
    writeNow() {
      if (waiting.length > 0 && !heldByOurselves()) writeBatch();
      resume?.();
    },
  };
}
