/**
 * @module
 * Paging through records for operators.
 *
 * Pages go by the row's number, the order in which keys were first seen. A record that changes keeps its
 * place, so the traffic beside it neither hides nor repeats one. Invariants: each read gives the event loop back; bodies
 * are never read.
 */
import { isOncekeyError } from "../../core/errors.js";
import { describeRecord, type RecordInfo, type RecordKey } from "../../core/record.js";
import type { ListRequest, RecordPage } from "../../core/store.js";
import { foreignCursor, gatherPage, type Placed, ROWS_PER_SLICE } from "../pages.js";
import { decodeRow, encodeText } from "../rows.js";
import { judged, type Moment } from "./clocks.js";
import type { SqliteConnection, SqliteRow, SqliteValue } from "./driver.js";
import { nextTurn } from "./pace.js";
import type { Tables } from "./schema.js";
import { bodyBytesOf, type Glance, WITHOUT_BODY } from "./statements.js";

export interface ListSource {
  readonly connection: SqliteConnection;
  readonly tables: Tables;
  readonly moment: () => Moment;
  /** Runs one read, again if the file was busy. */
  readonly read: <T>(attempt: () => T) => Promise<T>;
}

interface Condition {
  readonly sql: string;
  readonly params: readonly SqliteValue[];
}

/** @throws OncekeyError `CONFIGURATION_INVALID` for a limit or a cursor that no page gave. */
export async function listRecords(source: ListSource, request: ListRequest): Promise<RecordPage> {
  return gatherPage(request, idOfCursor(request.cursor), async (after, most) => {
    const until = await source.read(() => endOfSlice(source, request, after));
    if (until === undefined) return { matches: [], until };
    const matches = await source.read(() => matchesIn(source, request, { after, until, most }));
    await nextTurn();
    return { matches, until };
  });
}

/** A record without its body, as an operator sees it. */
export function infoOf({ record, bodyBytes }: Glance, nowMs: number): RecordInfo {
  const tombstone = record.state === "completed" && bodyBytes === undefined;
  return { ...describeRecord(record, nowMs), tombstone, resultBytes: bodyBytes ?? 0 };
}

/** The number of the last row to look at now; `undefined` if there are no more. */
function endOfSlice(source: ListSource, request: ListRequest, afterId: number): number | undefined {
  const states = stateCondition(request);
  const sql = `SELECT max(id) AS id FROM (
    SELECT id FROM ${source.tables.records} WHERE id > ?${states.sql} ORDER BY id LIMIT ${ROWS_PER_SLICE}
  )`;
  const id = source.connection.prepare(sql).get([afterId, ...states.params])?.id;
  return id === null || id === undefined ? undefined : Number(id);
}

function matchesIn(
  source: ListSource,
  request: ListRequest,
  { after, until, most }: { readonly after: number; readonly until: number; readonly most: number },
): Placed<number>[] {
  const now = source.moment();
  const states = stateCondition(request);
  const others = otherConditions(request, now.nowMs);
  const sql = `SELECT id, ${WITHOUT_BODY} FROM ${source.tables.records}
    WHERE id > ? AND id <= ?${states.sql}${others.sql} ORDER BY id LIMIT ?`;
  // Whether a lease has lapsed is judged below, so then the slice is the only bound.
  const rowsAtMost = request.state === "lapsed" ? ROWS_PER_SLICE : most;
  const params = [after, until, ...states.params, ...others.params, rowsAtMost];
  const rows = source.connection.prepare(sql).all(params);
  return rows.flatMap((row) => listed(row, request, now));
}

function listed(row: SqliteRow, { state }: ListRequest, now: Moment): Placed<number>[] {
  const place = Number(row.id);
  try {
    const record = judged(decodeRow(row), now);
    if (state === "lapsed" && now.nowMs < record.leaseEndsAtMs) return [];
    return [{ place, entry: infoOf({ record, bodyBytes: bodyBytesOf(row) }, now.nowMs) }];
  } catch (error) {
    if (!isOncekeyError(error, "RECORD_UNREADABLE")) throw error;
    return [{ place, entry: { unreadable: row.key as RecordKey } }];
  }
}

/** Spelled so that every state but `completed` is answered from the small index of unfinished records. */
function stateCondition({ state }: ListRequest): Condition {
  if (state === undefined) return { sql: "", params: [] };
  if (state === "completed") return { sql: " AND state = 'completed'", params: [] };
  return { sql: " AND state <> 'completed' AND state = ?", params: [state === "lapsed" ? "claimed" : state] };
}

function otherConditions({ scopeId, operation, olderThanMs }: ListRequest, nowMs: number): Condition {
  let sql = " AND (expires_at IS NULL OR expires_at > ?)";
  const params: SqliteValue[] = [nowMs];
  if (scopeId !== undefined) {
    sql += " AND scope_id = ?";
    params.push(scopeId);
  }
  if (operation !== undefined) {
    sql += " AND operation = ?";
    params.push(encodeText(operation));
  }
  if (olderThanMs !== undefined) {
    sql += " AND changed_at <= ?";
    params.push(nowMs - olderThanMs);
  }
  return { sql, params };
}

function idOfCursor(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw foreignCursor();
}
