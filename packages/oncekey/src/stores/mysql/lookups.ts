/**
 * @module
 * What is only read, and what is removed: states, single records, expired ones.
 *
 * Invariants: a body is never read; a purge looks without a lock, then removes by primary key what is still expired and
 * what nobody has.
 */
import { describeRecord, type RecordInfo, type RecordKey } from "../../core/record.js";
import type { KeyStatus } from "../../core/store.js";
import { currentRecord, statusOf } from "../../core/transitions.js";
import type { RecordRow } from "../rows.js";
import { statusOrFree } from "../unreadable.js";
import type { Database } from "./database.js";
import { lockText, type Records } from "./records.js";
import { bodyBytesOf, decodeRecord, SERVER_NOW, WITHOUT_BODY } from "./rows.js";
import { listOf, literal } from "./sql.js";

/** Keys of one read. */
export const MAX_STATUS = 500;

export async function statusOfAll(
  records: Records,
  keys: readonly RecordKey[],
): Promise<readonly KeyStatus[]> {
  const states: KeyStatus[] = [];
  for (let from = 0; from < keys.length; from += MAX_STATUS) {
    const some = keys.slice(from, from + MAX_STATUS);
    const { rows, nowMs } = await records.read(some, WITHOUT_HEAD);
    const found = new Map(rows.map((row) => [row.key as RecordKey, row]));
    for (const key of some) {
      const row = found.get(key);
      states.push(statusOrFree(() => statusOf(row && decodeRecord(row), nowMs)));
    }
  }
  return states;
}

/** The head of a result may be long, and says nothing of a state but that it is there. */
const WITHOUT_HEAD = WITHOUT_BODY.replace("`head`", "LEFT(head,1) AS head");

export async function findRecord(records: Records, key: RecordKey): Promise<RecordInfo | undefined> {
  const { rows, nowMs } = await records.read([key], WITHOUT_BODY);
  const [row] = rows;
  const current = row && currentRecord(decodeRecord(row), nowMs);
  return row && current && infoOf(row, nowMs);
}

/** A record without its body, as an operator sees it. */
export function infoOf(row: RecordRow, nowMs: number): RecordInfo {
  const record = decodeRecord(row);
  const bodyBytes = bodyBytesOf(row);
  const tombstone = record.state === "completed" && bodyBytes === undefined;
  return { ...describeRecord(record, nowMs), tombstone, resultBytes: bodyBytes ?? 0 };
}

/** Removes what lies under a key, readable or not. */
export async function discardRecord({ tables, within }: Database, key: RecordKey): Promise<void> {
  await within((ask) => ask(`DELETE FROM ${tables.records} WHERE \`key\` = ${literal(key)}`));
}

/** Removed in one transaction. */
const PURGE_SLICE = 100;
const ENDED = `state IN ('completed','claimed','released') AND expires_at<=${SERVER_NOW}`;

/** Removes up to `limit` expired records, in small transactions, so that nobody waits long behind one. */
export async function purgeRecords(database: Database, limit: number): Promise<number> {
  let removed = 0;
  while (removed < limit) {
    const slice = Math.min(PURGE_SLICE, limit - removed);
    const [seen, gone] = await purgeSlice(database, slice);
    removed += gone;
    if (seen < slice || gone === 0) break;
  }
  return removed;
}

/** @returns how many were found, and how many were removed: fewer, if somebody has one of them. */
function purgeSlice({ tables, within }: Database, limit: number): Promise<readonly [number, number]> {
  return within(async (ask) => {
    const seen = (await ask(
      `SELECT \`key\` FROM ${tables.records} WHERE ${ENDED} LIMIT ${Math.floor(limit)}`,
    )) as readonly RecordRow[];
    const keys = seen.map((row) => row.key as RecordKey);
    if (keys.length === 0) return [0, 0];
    const lock = lockText(tables.records, "`key`", keys, "pin", ` AND ${ENDED}`);
    const [, rows] = (await ask(`BEGIN;${lock} SKIP LOCKED`)) as readonly [unknown, readonly RecordRow[]];
    const locked = rows.map((row) => row.key as RecordKey);
    const remove = `DELETE FROM ${tables.records} WHERE \`key\` IN (${listOf(literal, locked)})`;
    await ask(locked.length === 0 ? "COMMIT" : `${remove};COMMIT`);
    return [keys.length, locked.length];
  });
}
