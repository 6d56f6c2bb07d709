/**
 * @module
 * Every statement on the records, prepared once for each connection.
 *
 * Invariant: a record is read, changed by a pure transition and written back inside one write transaction
 * of the caller. Beginning and ending transactions is left to `batch.ts` and `transaction.ts`.
 */
import type { RecordKey, StoredRecord } from "../../core/record.js";
import type { KeyStatus } from "../../core/store.js";
import { type Change, statusOf } from "../../core/transitions.js";
import { COLUMNS, decodeRow, encodeRow } from "../rows.js";
import { statusOrFree } from "../unreadable.js";
import { judged, type Moment } from "./clocks.js";
import type { SqliteConnection, SqliteRow, SqliteStatement } from "./driver.js";
import type { Tables } from "./schema.js";

/** A call of the port on one key: what it answers and the record after it, as a function of the record before. */
export type Transition<Outcome> = (stored: StoredRecord | undefined, nowMs: number) => Change<Outcome>;

export interface Records {
  /** Reads the record as it counts at `moment`. */
  read(key: RecordKey, moment: Moment): StoredRecord | undefined;
  /** The same without its body: a completed record looks like a tombstone. */
  glance(key: RecordKey, moment: Moment): Glance | undefined;
  /** Reads, changes and writes; `changed` says whether anything was written. */
  apply<Outcome>(key: RecordKey, transition: Transition<Outcome>, moment: Moment): Applied<Outcome>;
  /** The states of up to `MAX_STATUS` keys, in the order asked. */
  status(keys: readonly RecordKey[], moment: Moment): readonly KeyStatus[];
  /** Removes what lies under a key, readable or not. */
  discard(key: RecordKey): void;
  /** Removes up to `limit` expired records; returns how many. */
  purge(limit: number, moment: Moment): number;
  /** Changes when another connection has written. */
  dataVersion(): number;
}

export interface Glance {
  readonly record: StoredRecord;
  /** `undefined`: there is no body. */
  readonly bodyBytes: number | undefined;
}

export interface Applied<Outcome> {
  readonly outcome: Outcome;
  readonly record: StoredRecord | undefined;
  readonly changed: boolean;
}

/** Keys of one read, so that it does not hold up the event loop. */
export const MAX_STATUS = 500;

const ALL = COLUMNS.join(", ");
const BUT_BODY = COLUMNS.filter((column) => column !== "body").join(", ");
/** SQLite knows the length of a body without reading it. */
export const WITHOUT_BODY = `${BUT_BODY}, NULL AS body, length(body) AS body_bytes`;

export function prepareRecords(connection: SqliteConnection, tables: Tables): Records {
  const statements = textsOf(tables.records);
  const prepared = new Map<string, SqliteStatement>();
  const statement = (sql: string): SqliteStatement => {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    const made = connection.prepare(sql);
    prepared.set(sql, made);
    return made;
  };

  /** What was read for a key has to be of that key: a client that mixes up its parameters is found out here. */
  function decoded(key: RecordKey, row: SqliteRow, moment: Moment): StoredRecord {
    const record = decodeRow(row);
    if (record.key !== key) throw new TypeError("The client answered for another key");
    return judged(record, moment);
  }

  function read(key: RecordKey, moment: Moment): StoredRecord | undefined {
    const row = statement(statements.read).get([key]);
    return row === undefined ? undefined : decoded(key, row, moment);
  }

  return {
    read,
    glance(key, moment) {
      const row = statement(statements.glance).get([key]);
      if (row === undefined) return undefined;
      return { record: decoded(key, row, moment), bodyBytes: bodyBytesOf(row) };
    },
    apply(key, transition, moment) {
      const before = read(key, moment);
      const { outcome, record } = transition(before, moment.nowMs);
      if (record === before) return { outcome, record, changed: false };
      // Each of these says whether the row was what it was read as: nothing is ever written over by mistake.
      if (before === undefined) {
        if (record !== undefined) statement(statements.insert).run(encodeRow(record));
      } else {
        const { changes } =
          record === undefined
            ? statement(statements.remove).run([key])
            : statement(statements.update).run([...encodeRow(record), key]);
        if (changes !== 1)
          throw new TypeError(`A record changed while it was being written: ${changes} rows`);
      }
      return { outcome, record, changed: true };
    },
    status(keys, moment) {
      const rows = statement(statements.status).all([JSON.stringify(keys)]);
      const found = new Map(rows.map((row) => [row.key, row]));
      return keys.map((key) =>
        statusOrFree(() => {
          const row = found.get(key);
          return statusOf(row && judged(decodeRow(row), moment), moment.nowMs);
        }),
      );
    },
    discard: (key) => void statement(statements.remove).run([key]),
    purge(limit, { nowMs, sinceJumpMs }) {
      // Number.MAX_SAFE_INTEGER stands for "never": SQLite's infinity is no integer.
      const quietMs = Math.min(Math.floor(sinceJumpMs), Number.MAX_SAFE_INTEGER);
      return statement(statements.purge).run([nowMs, nowMs, quietMs, limit]).changes;
    },
    dataVersion: () => Number(statement("PRAGMA data_version").get([])?.data_version ?? 0),
  };
}

export function bodyBytesOf(row: Readonly<Record<string, unknown>>): number | undefined {
  const bytes = row.body_bytes;
  return bytes === null || bytes === undefined ? undefined : Number(bytes);
}

function textsOf(records: string) {
  return {
    read: `SELECT ${ALL} FROM ${records} WHERE key = ?`,
    glance: `SELECT ${WITHOUT_BODY} FROM ${records} WHERE key = ?`,
    insert: `INSERT INTO ${records} (${ALL}) VALUES (${COLUMNS.map(() => "?").join(", ")})`,
    // The row keeps its number, and so its place in `list`.
    update: `UPDATE ${records} SET (${ALL}) = (${COLUMNS.map(() => "?").join(", ")}) WHERE key = ?`,
    remove: `DELETE FROM ${records} WHERE key = ?`,
    status: `SELECT ${WITHOUT_BODY} FROM ${records} WHERE key IN (SELECT value FROM json_each(?))`,
    // A claim is expired one retention after its lease. The second look at the lease is for a clock that jumped.
    purge: `DELETE FROM ${records} WHERE id IN (
              SELECT id FROM ${records}
              WHERE expires_at <= ? AND state <> 'unknown'
                AND (state <> 'claimed' OR (lease_ends_at <= ? AND lease_ms <= ?))
              ORDER BY expires_at LIMIT ?)`,
  } as const;
}
