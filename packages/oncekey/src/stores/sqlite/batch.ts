/**
 * @module
 * Many calls in one write transaction: one wait for the disk instead of one for each.
 *
 * Invariants: nobody can observe a batch. An entry is answered after the commit that holds it, entries of one
 * key keep their order, and an entry at fault fails alone. Each entry writes with at most one statement, so
 * what fails leaves nothing half-done. When batches run is left to `queue.ts`.
 */
import { isOncekeyError } from "../../core/errors.js";
import type { RecordKey } from "../../core/record.js";
import type { Moment } from "./clocks.js";
import { faultOf, rollBack, type SqliteConnection } from "./driver.js";
import { unavailable } from "./pace.js";
import type { Records } from "./statements.js";

/** One call, waiting to be written. */
export interface Entry {
  /** `undefined`: it concerns no single key. */
  readonly key: RecordKey | undefined;
  /** Roughly what it will write. */
  readonly bytes: number;
  /** When its caller has waited long enough, on the monotonic clock. */
  readonly endsAtMs: number;
  /** Answers the call by reading alone, if that is possible; `false` if it has to write. */
  tryReading(records: Records, moment: Moment): boolean;
  /** Does the call inside the transaction and keeps the answer. */
  perform(records: Records, moment: Moment): void;
  /** Gives the kept answer; called after the commit. */
  answer(): void;
  fail(error: unknown): void;
}

/** What one transaction takes, so that the event loop's pause is bounded: about 2 ms of work and one wait for the disk. */
const MAX_ENTRIES = 64;
const MAX_BYTES = 1024 * 1024;

/** The first of `entries` that go together; at least one. */
export function nextBatch(entries: readonly Entry[]): readonly Entry[] {
  const batch = entries.slice(0, MAX_ENTRIES);
  let bytes = 0;
  const tooMany = batch.findIndex((entry, index) => {
    bytes += entry.bytes;
    return index > 0 && bytes > MAX_BYTES;
  });
  return tooMany === -1 ? batch : batch.slice(0, tooMany);
}

/**
 * Commits the entries together and answers them.
 *
 * @throws what SQLite threw if it could not be committed; then nobody was answered, and every entry may be repeated.
 */
export function runBatch(
  connection: SqliteConnection,
  records: Records,
  entries: readonly Entry[],
  moment: () => Moment,
): void {
  connection.exec("BEGIN IMMEDIATE");
  const failed = new Map<Entry, unknown>();
  try {
    // Read while holding the write lock: the time before it may have been a long wait.
    const now = moment();
    for (const entry of entries) {
      try {
        entry.perform(records, now);
      } catch (error) {
        if (!isOwnFault(error) || !connection.inTransaction()) throw error;
        failed.set(entry, error);
      }
    }
    connection.exec("COMMIT");
  } catch (error) {
    rollBack(connection);
    throw error;
  }
  for (const entry of entries) {
    if (failed.has(entry)) entry.fail(unavailable(failed.get(entry)));
    else entry.answer();
  }
}

/** A damaged record, a value too large, a slip of ours: the transaction goes on without it. */
function isOwnFault(error: unknown): boolean {
  if (isOncekeyError(error) || error instanceof TypeError) return true;
  return faultOf(error) === "entry";
}
