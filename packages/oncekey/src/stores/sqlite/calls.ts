/**
 * @module
 * A call of the port as an entry of the write queue.
 *
 * Invariant: each call is one transition on one key, read and written in one transaction; a call that turns
 * out to change nothing may be answered from a read alone, which is then its place in the order of things.
 */
import type { RecordKey } from "../../core/record.js";
import type { Entry } from "./batch.js";
import { monotonicMs } from "./pace.js";
import type { Applied, Transition } from "./statements.js";

export interface TransitionCall<Outcome> {
  readonly key: RecordKey;
  readonly transition: Transition<Outcome>;
  /** Size of the result that comes with it. */
  readonly bytes: number;
  /** Whether it is worth trying to answer it by reading: a claim often meets a completed record. */
  readonly readsFirst: boolean;
}

/** @param ended told after the commit that nobody holds the key as before: it is completed, free or unknown. */
export function enqueueTransition<Outcome>(
  submit: (entry: Entry) => void,
  waitMs: number,
  { key, transition, bytes, readsFirst }: TransitionCall<Outcome>,
  ended: (key: RecordKey) => void,
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    let applied: Applied<Outcome> | undefined;
    submit({
      key,
      bytes,
      endsAtMs: monotonicMs() + waitMs,
      tryReading(records, moment) {
        if (!readsFirst) return false;
        const before = records.read(key, moment);
        const { outcome, record } = transition(before, moment.nowMs);
        if (record !== before) return false;
        resolve(outcome);
        return true;
      },
      perform(records, moment) {
        applied = records.apply(key, transition, moment);
      },
      answer() {
        if (applied === undefined) return;
        if (applied.changed && applied.record?.state !== "claimed") ended(key);
        resolve(applied.outcome);
      },
      fail: reject,
    });
  });
}

/** Removes what lies under a key, readable or not. */
export function enqueueDiscard(
  submit: (entry: Entry) => void,
  waitMs: number,
  key: RecordKey,
): Promise<void> {
  return new Promise((resolve, reject) => {
    submit({
      key,
      bytes: 0,
      endsAtMs: monotonicMs() + waitMs,
      tryReading: () => false,
      perform: (records) => records.discard(key),
      answer: () => resolve(),
      fail: reject,
    });
  });
}

/** Removes up to `limit` expired records in one transaction. */
export function enqueuePurge(submit: (entry: Entry) => void, waitMs: number, limit: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let removed = 0;
    submit({
      key: undefined,
      bytes: 0,
      endsAtMs: monotonicMs() + waitMs,
      tryReading: () => false,
      perform(records, moment) {
        removed = records.purge(limit, moment);
      },
      answer: () => resolve(removed),
      fail: reject,
    });
  });
}
