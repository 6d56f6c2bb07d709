/**
 * @module
 * Reading one record, and writing it back if it is still what was read.
 *
 * Invariants: a write locks its row before anything else and refuses to wait for it, so that the store's own statements
 * never wait for each other in a circle: that is what a deadlock is. A row that somebody holds is asked for again for as
 * long as the caller has patience. Nothing is written over a state that was not read: the revision says which one it was.
 */
import { systemClock } from "../../core/clock.js";
import { OncekeyError } from "../../core/errors.js";
import type { RecordKey, StoredRecord } from "../../core/record.js";
import type { Reading, RemoteRecords } from "../compare-and-set.js";
import type { RecordRow } from "../rows.js";
import type { Database } from "./database.js";
import { errnoOf, faultOf } from "./driver.js";
import {
  ALL,
  assignments,
  decodeRecord,
  EPOCH,
  fittingOutcome,
  insertText,
  instantOf,
  newRevision,
  SERVER_NOW,
} from "./rows.js";
import { withoutWaiting } from "./server.js";
import { listOf, literal } from "./sql.js";

export interface Records {
  /** The records of `keys` as they are committed now, in no order, and the server's clock. */
  read(keys: readonly RecordKey[], columns?: string): Promise<Rows>;
  /** For `changeRemotely`: writes with that much patience for rows that others hold. */
  patient(patienceMs: number): RemoteRecords<number>;
}

interface Rows {
  readonly rows: readonly RecordRow[];
  readonly nowMs: number;
}

export const NOW = `SELECT ${instantOf(SERVER_NOW)} AS now_ms`;

export function createRecords(database: Database, timeoutMs: number): Records {
  const { tables, ask } = database;

  async function read(keys: readonly RecordKey[], columns = ALL): Promise<Rows> {
    const results = await ask(`${NOW};${selectText(tables.records, columns, keys)}`);
    const [now, rows] = results as readonly [readonly RecordRow[], readonly RecordRow[]];
    return { rows, nowMs: nowOf(now) };
  }

  async function write(
    key: RecordKey,
    expected: number | undefined,
    record: StoredRecord | undefined,
    nowMs: number,
  ): Promise<boolean> {
    const { flavor, maxPacketBytes } = await database.ready();
    const fitting = record && withFittingOutcome(record, maxPacketBytes);
    if (expected !== undefined) {
      return affected(
        await ask(lockedText(tables.records, [key], "pin", [changeText(key, expected, fitting, nowMs)])),
        0,
      );
    }
    if (fitting === undefined) return true;
    const revision = newRevision();
    const insert = insertText(tables.records, literal, [[fitting, revision]], EPOCH);
    const inserted = { table: tables.records, keys: [key], revisions: [revision] };
    const insertion = withoutWaiting(flavor, selectText(tables.records, "1", [key]), insert);
    const statements = [
      ...inTime(inserted, nowMs + timeoutMs, insertion),
      selectText(tables.records, "revision", [key]),
    ];
    const results = (await ask(statements.join(";")).catch(
      nothingIfLate,
    )) as readonly (readonly RecordRow[])[];
    return results.at(-1)?.some((row) => Number(row.revision) === revision) ?? false;
  }

  function changeText(
    key: RecordKey,
    expected: number,
    record: StoredRecord | undefined,
    nowMs: number,
  ): string {
    const inTime = `${SERVER_NOW}<${instantAt(nowMs + timeoutMs)}`;
    const here = `WHERE \`key\`=${literal(key)} AND revision=${expected} AND ${inTime}`;
    if (record === undefined) return `DELETE FROM ${tables.records} ${here}`;
    return `UPDATE ${tables.records} SET ${assignments(literal, record, newRevision())} ${here}`;
  }

  return {
    read,
    patient: (patienceMs) => ({
      async read(key) {
        const { rows, nowMs } = await read([key]);
        return readingOf(rows[0], nowMs);
      },
      write: (key, revision, record, nowMs) =>
        whileHeld(() => write(key, revision, record, nowMs), patienceMs),
    }),
  };
}

/** What the server says of a subquery that gives more than the one row it may. */
export const TOO_LATE = 1242;

/** Rows that are being inserted, by their keys and the revisions that were drawn for them. */
interface Inserted {
  readonly table: string;
  readonly keys: readonly RecordKey[];
  readonly revisions: readonly number[];
}

/**
 * `insertion`, unless an instant of the server's clock has passed: what lay on the way while its caller was refused is not
 * done any more. The first statement then fails, and with it everything that follows in the same round trip. A server that
 * stands still after it goes on with the insertion, however late, so the last one takes back what came too late.
 *
 * @param untilMs `undefined`: whenever it gets there.
 */
export function inTime(
  { table, keys, revisions }: Inserted,
  untilMs: number | undefined,
  insertion: readonly string[],
): readonly string[] {
  if (untilMs === undefined) return insertion;
  const late = `${SERVER_NOW}>=${instantAt(untilMs)}`;
  const own = `\`key\` IN (${listOf(literal, keys)}) AND revision IN (${listOf(literal, revisions)})`;
  return [
    `SELECT (SELECT 1 UNION ALL SELECT 2 FROM DUAL WHERE ${late}) AS in_time`,
    ...insertion,
    `DELETE FROM ${table} WHERE ${late} AND ${own}`,
  ];
}

function instantAt(serverMs: number): string {
  return `${EPOCH} + INTERVAL ${Math.floor(serverMs)}*1000 MICROSECOND`;
}

function nothingIfLate(error: unknown): readonly never[] {
  if (errnoOf(error) !== TOO_LATE) throw error;
  return [];
}

/** @throws OncekeyError `RECORD_UNREADABLE` */
export function readingOf(row: RecordRow | undefined, nowMs: number): Reading<number> {
  if (row === undefined) return { record: undefined, revision: undefined, nowMs };
  return { record: decodeRecord(row), revision: Number(row.revision), nowMs };
}

export function nowOf(rows: readonly RecordRow[]): number {
  return Number(rows[0]?.now_ms);
}

export function selectText(table: string, columns: string, keys: readonly RecordKey[]): string {
  return `SELECT ${columns} FROM ${table} FORCE INDEX (PRIMARY) WHERE \`key\` IN (${listOf(literal, keys)})`;
}

/**
 * What a change has to have locked before: `PRIMARY`, the row; `pin`, also its entry there, which nobody has who only lets its
 * holder go on. The optimizer is not asked: it may take one for the other.
 */
export type Locked = "PRIMARY" | "pin";

export function lockText(
  table: string,
  columns: string,
  keys: readonly RecordKey[],
  locked: Locked,
  condition = "",
): string {
  const where = `WHERE \`key\` IN (${listOf(literal, keys)})${condition} ORDER BY \`key\``;
  return `SELECT ${columns} FROM ${table} FORCE INDEX (${locked}) ${where} FOR UPDATE`;
}

/** Locks the rows of `keys` without waiting, and changes them, as one transaction. */
export function lockedText(
  table: string,
  keys: readonly RecordKey[],
  locked: Locked,
  changes: readonly string[],
): string {
  return ["BEGIN", `${lockText(table, "1", keys, locked)} NOWAIT`, ...changes, "COMMIT"].join(";");
}

/** Whether the change of that place in `lockedText` has met its row. A revision always differs, so no flag changes this. */
export function affected(results: unknown, index: number): boolean {
  const { affectedRows } = (results as readonly { readonly affectedRows?: unknown }[])[2 + index] ?? {};
  return affectedRows === 1;
}

function withFittingOutcome(record: StoredRecord, maxPacketBytes: number): StoredRecord {
  if (record.outcome === undefined) return record;
  const outcome = fittingOutcome(record.outcome, maxPacketBytes);
  return outcome === record.outcome ? record : { ...record, outcome };
}

export const LONGEST_PAUSE_MS = 20;

/**
 * Tries again while somebody else has the row, for at most `patienceMs`.
 *
 * @throws the server's own error once the patience is over: `faultOf` says `held`.
 */
export async function whileHeld<T>(attempt: () => Promise<T>, patienceMs: number): Promise<T> {
  const endsAtMs = systemClock.monotonicMs() + patienceMs;
  for (let tries = 0; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (faultOf(error) !== "held" || systemClock.monotonicMs() >= endsAtMs) throw error;
    }
    await pause(Math.random() * Math.min(LONGEST_PAUSE_MS, 2 ** Math.min(tries, 10)));
  }
}

export function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    systemClock.setTimer(resolve, delayMs);
  });
}

/** What a call answers that met a row in somebody else's transaction until its patience was over. */
export function heldTooLong(cause: unknown): OncekeyError<"STORE_UNAVAILABLE"> {
  const message =
    "Another transaction has this record and did not end in time. Nothing was changed; try again.";
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause });
}
