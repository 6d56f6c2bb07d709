/**
 * @module
 * Pinning a claim in a transaction of the application's: the entry of its key and token is locked for sharing until that
 * transaction ends, and the row itself is not.
 *
 * Whoever wants to take the claim from its holder (a takeover, a release, a verdict, a purge) has to change that entry, meets
 * the lock and lets the claim live; renewals and the completion do not touch it. Invariant: nothing is waited for in the
 * database; an entry that somebody locks for a moment is asked about again.
 */
import { systemClock } from "../../core/clock.js";
import type { RecordKey } from "../../core/record.js";
import type { PinOutcome, PinRequest } from "../../core/store.js";
import { currentRecord } from "../../core/transitions.js";
import {
  callerOf,
  type MysqlCallerTransaction,
  outsideTransaction,
  RowHeld,
  retryTransaction,
  SavepointGone,
} from "./caller.js";
import type { Database } from "./database.js";
import { recordsTable } from "./join-statements.js";
import { LONGEST_PAUSE_MS, pause, type Records } from "./records.js";
import { decodeRecord, WITHOUT_BODY } from "./rows.js";
import { sharedNowait } from "./server.js";

const SAVEPOINT = "oncekey_pin";

export async function pinInTransaction(
  database: Database,
  records: Records,
  transaction: MysqlCallerTransaction,
  { key, token, waitMs }: PinRequest,
): Promise<PinOutcome> {
  const server = await database.ready();
  const { ask } = callerOf(transaction);
  const endsAtMs = systemClock.monotonicMs() + waitMs;
  // What it reads is in the entry, so the row stays free: an answer that needs the row would lock it too.
  const sql = `SELECT 'held' AS answer FROM ${recordsTable(database.tables, server)} FORCE INDEX (pin)
    WHERE \`key\`=? AND token=? ${sharedNowait(server.flavor)}`;
  await ask(`SAVEPOINT ${SAVEPOINT}`);
  for (;;) {
    try {
      const found = await ask(sql, [key, token]);
      await ask(`RELEASE SAVEPOINT ${SAVEPOINT}`).catch(outsideIfGone);
      return { kind: found.length > 0 && (await isClaimed(records, key)) ? "pinned" : "not-held" };
    } catch (error) {
      if (!(error instanceof RowHeld)) throw error;
    }
    await ask(`ROLLBACK TO SAVEPOINT ${SAVEPOINT}`).catch(outsideIfGone);
    if (systemClock.monotonicMs() >= endsAtMs) throw retryTransaction();
    await pause(Math.random() * LONGEST_PAUSE_MS);
  }
}

/** Read beside the transaction, whose snapshot may be older. Its token is locked, so whose claim it is cannot change. */
async function isClaimed(records: Records, key: RecordKey): Promise<boolean> {
  const { rows, nowMs } = await records.read([key], WITHOUT_BODY);
  const [row] = rows;
  return row !== undefined && currentRecord(decodeRecord(row), nowMs)?.state === "claimed";
}

/** Outside a transaction a savepoint is gone as soon as it is made, and the lock with it. */
function outsideIfGone(error: unknown): never {
  throw error instanceof SavepointGone ? outsideTransaction() : error;
}
