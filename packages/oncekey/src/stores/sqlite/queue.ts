/**
 * @module
 * Where every write to the file goes first: gathered over one turn of the event loop, then written together.
 *
 * Invariants: bounded in entries and bytes; calls on one key keep their order. A call that only has to read (a
 * replay, a repeat of running work) is answered without the write lock, so that neither an open transaction
 * nor another process delays it.
 */
import { OncekeyError } from "../../core/errors.js";
import { MIB } from "../../core/limits.js";
import type { RecordKey } from "../../core/record.js";
import type { Entry } from "./batch.js";
import type { Moment } from "./clocks.js";
import { createWriter, type WriterOptions } from "./writer.js";

/** More than a burst; what is above it could not be answered in time anyway. */
const MAX_QUEUED = 10_000;
const MAX_QUEUED_BYTES = 64 * MIB;
/** Reads of one turn of the event loop: about 2 ms. */
const MAX_READS = 128;

export interface WriteQueue {
  submit(entry: Entry): void;
  /** Writes one batch now, if somebody waits: called when this process's own transaction has ended. */
  writeNow(): void;
  /** Resolves once everything submitted so far has been answered. */
  drained(): Promise<void>;
}

export function createWriteQueue(options: WriterOptions): WriteQueue {
  const { records, moment } = options;
  const writer = createWriter(options, (entries) => {
    for (const entry of entries) leave(entry);
  });
  /** Submitted and not looked at yet. */
  let fresh: Entry[] = [];
  let queued = 0;
  let queuedBytes = 0;
  let onDrained: (() => void)[] = [];

  function submit(entry: Entry): void {
    if (queued >= MAX_QUEUED || queuedBytes + entry.bytes > MAX_QUEUED_BYTES) {
      entry.fail(overflow());
      return;
    }
    queued += 1;
    queuedBytes += entry.bytes;
    if (fresh.push(entry) === 1) setImmediate(admit);
  }

  function leave({ bytes }: Entry): void {
    queued -= 1;
    queuedBytes -= bytes;
    if (queued > 0) return;
    const told = onDrained;
    onDrained = [];
    for (const tell of told) tell();
  }

  function admit(): void {
    const admitted = fresh.slice(0, MAX_READS);
    fresh = fresh.slice(admitted.length);
    if (fresh.length > 0) setImmediate(admit);
    const now = moment();
    const keys = new Set<RecordKey | undefined>(writer.waiting().map(({ key }) => key));
    const toWrite = admitted.filter((entry) => {
      // Behind a write of the same key it waits its turn.
      if (!keys.has(entry.key) && triedReading(entry, now)) return false;
      keys.add(entry.key);
      return true;
    });
    writer.add(toWrite);
  }

  function triedReading(entry: Entry, now: Moment): boolean {
    let done = false;
    try {
      done = entry.tryReading(records, now);
    } catch {
      // Whatever it was, writing meets it again and can tell the kinds of fault apart.
    }
    if (done) leave(entry);
    return done;
  }

  return {
    submit,
    writeNow: writer.writeNow,
    drained: () =>
      new Promise((resolve) => {
        if (queued === 0) resolve();
        else onDrained.push(resolve);
      }),
  };
}

function overflow(): OncekeyError<"STORE_UNAVAILABLE"> {
  const message = `More than ${MAX_QUEUED} calls, or ${MAX_QUEUED_BYTES} bytes, wait for the database. Nothing was changed; try again.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000 });
}
