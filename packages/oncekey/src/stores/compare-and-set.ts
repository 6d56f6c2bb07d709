/**
 * @module
 * A transition of the core on a record that a server keeps: read it, decide here, write it back if nobody has meanwhile.
 *
 * The calls of every request (claim a free key, complete, release) are single statements of each store. This is for all
 * the others (takeover, attempts, reconciling, operators), which then mean exactly what they mean in an embedded store,
 * because the same functions decide.
 *
 * Invariants: the server's clock, read with the record, judges; nothing is written over a state that was not read, nor after
 * whoever sent it has given it up (a takeover that nobody knows of would hold the key for a lease); the number of rounds is
 * bounded. A write whose answer is lost may have landed: asked again with the same token, the
 * transition finds its own doing.
 */
import { OncekeyError } from "../core/errors.js";
import type { RecordKey, StoredRecord } from "../core/record.js";
import type { Change } from "../core/transitions.js";

/** One look at a key. */
export interface Reading<Revision> {
  /** As stored, also when it has expired. */
  readonly record: StoredRecord | undefined;
  /** Names this very state, renewals included; `undefined` if and only if nothing is stored. */
  readonly revision: Revision | undefined;
  /** The server's clock when it was read. */
  readonly nowMs: number;
}

export interface RemoteRecords<Revision> {
  /** @throws OncekeyError `RECORD_UNREADABLE` */
  read(key: RecordKey): Promise<Reading<Revision>>;
  /**
   * Stores `record` (or removes it) if the key is still at `revision`, and if a caller who read at `nowMs` can still be
   * waiting when the server gets to it; `false`: not so, and nothing was changed.
   */
  write(
    key: RecordKey,
    revision: Revision | undefined,
    record: StoredRecord | undefined,
    nowMs: number,
  ): Promise<boolean>;
}

export interface Changed<Outcome> {
  readonly outcome: Outcome;
  /** The record afterwards. */
  readonly record: StoredRecord | undefined;
  /** `false`: it was left as it was. */
  readonly written: boolean;
}

/** Whoever loses this often in a row meets a key on which somebody else gets on with every round. */
const MAX_ROUNDS = 32;

/**
 * Applies `transition` to the record of `key`.
 *
 * @param first a reading that the caller has already made, to be decided on in the first round.
 * @throws OncekeyError `RECORD_UNREADABLE`; `STORE_UNAVAILABLE` if the record changed under every round. Nothing was changed.
 */
export async function changeRemotely<Outcome, Revision>(
  records: RemoteRecords<Revision>,
  key: RecordKey,
  transition: (record: StoredRecord | undefined, nowMs: number) => Change<Outcome>,
  first?: Reading<Revision>,
): Promise<Changed<Outcome>> {
  let reading = first;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    reading ??= await records.read(key);
    const { record: before, revision, nowMs } = reading;
    const { outcome, record } = transition(before, nowMs);
    if (record === before) return { outcome, record, written: false };
    if (await records.write(key, revision, record, nowMs)) return { outcome, record, written: true };
    reading = undefined;
  }
  throw new OncekeyError(
    "STORE_UNAVAILABLE",
    `The record changed ${MAX_ROUNDS} times while it was being changed. Nothing was done; try again.`,
    { retryAfterMs: 1_000 },
  );
}
