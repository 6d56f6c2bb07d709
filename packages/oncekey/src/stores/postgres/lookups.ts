/**
 * @module
 * Looking at records without changing them, and removing those that have expired.
 *
 * Pages go by key: the order of the index that is there anyway, in which a record that changes keeps its place. Invariant: one
 * statement looks at a bounded number of rows; bodies are not read. A row that cannot be read takes its place on the page by its
 * key, so that it hides none of the others.
 */
import { configurationError, isOncekeyError } from "../../core/errors.js";
import { MAX_PAGE } from "../../core/limits.js";
import type { RecordInfo, RecordKey } from "../../core/record.js";
import type { KeyStatus, ListRequest, RecordPage, Store } from "../../core/store.js";
import { currentRecord, statusOf } from "../../core/transitions.js";
import { COLUMNS, encodeText } from "../rows.js";
import { statusOrFree } from "../unreadable.js";
import type { Place } from "./changes.js";
import { arrayOf, infoOf, inMs, later, recordOf, selected } from "./codec.js";
import type { PostgresParam, PostgresRow } from "./driver.js";
import type { Tables } from "./schema.js";

/** Keys of one statement. */
const MAX_STATUS = 1_000;
/** Removed by one statement, so that its locks are short. */
const PURGE_SLICE = 500;
/** Rows looked at by one statement. */
const ROWS_PER_SLICE = 5_000;

export function createLookups(
  place: Place,
  tables: Tables,
): Required<Pick<Store, "status" | "find" | "list" | "purge" | "discard">> {
  const { statements, run } = place;
  return {
    async status(keys) {
      const states: KeyStatus[] = [];
      for (let from = 0; from < keys.length; from += MAX_STATUS) {
        states.push(...(await statusOfSome(place, keys.slice(from, from + MAX_STATUS))));
      }
      return states;
    },
    async find(key) {
      const [row = []] = await run(statements.glance, [key]);
      const nowMs = Number(row[0]);
      const stored = recordOf(row.slice(1));
      if (stored === undefined || currentRecord(stored.record, nowMs) === undefined) return undefined;
      return infoOf(stored, nowMs);
    },
    list: (request) => listRecords(place, tables, request),
    async discard(key) {
      await run(statements.discard, [key]);
    },
    async purge(limit) {
      let removed = 0;
      while (removed < limit) {
        const slice = Math.min(PURGE_SLICE, limit - removed);
        const [row] = await run(statements.purge, [String(slice)]);
        const now = Number(row?.[0] ?? 0);
        removed += now;
        if (now < slice) break;
      }
      return removed;
    },
  };
}

async function statusOfSome({ statements, run }: Place, keys: readonly RecordKey[]): Promise<KeyStatus[]> {
  const rows = await run(statements.status, [arrayOf(keys)]);
  const found = new Map(
    rows.map(([place, nowMs, ...values]) => [
      Number(place) - 1,
      statusOrFree(() => statusOf(recordOf(values)?.record, Number(nowMs))),
    ]),
  );
  return keys.map((_, index) => found.get(index) ?? { state: "absent", holder: undefined });
}

interface Listed {
  readonly key: string;
  readonly entry: RecordInfo | { readonly unreadable: RecordKey };
}

interface Condition {
  readonly sql: string;
  readonly params: readonly PostgresParam[];
}

/** @throws OncekeyError `CONFIGURATION_INVALID` for a limit or a cursor that no page gave. */
async function listRecords(place: Place, tables: Tables, request: ListRequest): Promise<RecordPage> {
  const limit = checkedLimit(request.limit);
  const found: Listed[] = [];
  let after = checkedCursor(request.cursor);
  // One more than asked shows whether there is another page.
  while (found.length <= limit) {
    const until = await endOfSlice(place, tables, request, after);
    if (until === undefined) break;
    found.push(...(await matches(place, tables, request, after, until, limit + 1 - found.length)));
    after = until;
  }
  const page = found.slice(0, limit);
  const unreadable = page.flatMap(({ entry }) => ("unreadable" in entry ? [entry.unreadable] : []));
  return {
    records: page.flatMap(({ entry }) => ("unreadable" in entry ? [] : [entry])),
    ...(unreadable.length > 0 && { unreadable }),
    cursor: found.length > limit ? page.at(-1)?.key : undefined,
  };
}

/** The key of the last row to look at now; `undefined` if there are no more. */
async function endOfSlice(
  { run }: Place,
  { records }: Tables,
  request: ListRequest,
  after: string,
): Promise<string | undefined> {
  const states = stateCondition(request, 2);
  const text = `SELECT max(slice.key) FROM (
    SELECT r.key FROM ${records} r WHERE r.key > $1::text${states.sql} ORDER BY r.key LIMIT ${ROWS_PER_SLICE}) slice`;
  const [row] = await run({ name: undefined, text }, [after, ...states.params]);
  return row?.[0] ?? undefined;
}

async function matches(
  { run }: Place,
  { records }: Tables,
  request: ListRequest,
  after: string,
  until: string,
  most: number,
): Promise<Listed[]> {
  const states = stateCondition(request, 3);
  const others = otherConditions(request, 3 + states.params.length);
  const text = `WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT ${inMs("clock.now")}, ${selected("r", "without-body")} FROM ${records} r CROSS JOIN clock
    WHERE r.key > $1::text AND r.key <= $2::text${states.sql}${others.sql} ORDER BY r.key LIMIT ${most}`;
  const rows = await run({ name: undefined, text }, [after, until, ...states.params, ...others.params]);
  return rows.map(([nowMs, ...values]) => listed(values, Number(nowMs)));
}

function listed(values: PostgresRow, nowMs: number): Listed {
  const key = values[COLUMNS.indexOf("key")] ?? "";
  try {
    const stored = recordOf(values);
    if (stored === undefined) throw new TypeError("A row without a key was listed");
    return { key, entry: infoOf(stored, nowMs) };
  } catch (error) {
    if (!isOncekeyError(error, "RECORD_UNREADABLE")) throw error;
    return { key, entry: { unreadable: key as RecordKey } };
  }
}

/** Spelled so that every state but `completed` is answered from the small index of unfinished records. */
function stateCondition({ state }: ListRequest, first: number): Condition {
  if (state === undefined) return { sql: "", params: [] };
  if (state === "completed") return { sql: " AND r.state = 'completed'", params: [] };
  const sql = ` AND r.state <> 'completed' AND r.state = $${first}::text`;
  return { sql, params: [state === "lapsed" ? "claimed" : state] };
}

function otherConditions(request: ListRequest, first: number): Condition {
  const { scopeId, operation, olderThanMs, state } = request;
  const params: PostgresParam[] = [];
  const next = (value: string): string => {
    params.push(value);
    return `$${first + params.length - 1}::text`;
  };
  const end = `CASE WHEN r.state = 'claimed' THEN ${later("r.lease_ends_at", "r.retention_ms")} ELSE r.expires_at END`;
  let sql = ` AND (r.state = 'unknown' OR clock.now < ${end})`;
  if (state === "lapsed") sql += " AND r.lease_ends_at <= clock.now";
  if (scopeId !== undefined) sql += ` AND r.scope_id = ${next(scopeId)}`;
  if (operation !== undefined) sql += ` AND r.operation = ${next(encodeText(operation))}`;
  if (olderThanMs !== undefined) {
    sql += ` AND ${later("r.changed_at", `${next(String(olderThanMs))}::float8`)} <= clock.now`;
  }
  return { sql, params };
}

function checkedLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE) return limit;
  throw configurationError("The list request", [`limit is a whole number from 1 to ${MAX_PAGE}`]);
}

/** A key is a digest in base64url. */
function checkedCursor(cursor = ""): string {
  if (/^[\w-]{0,100}$/.test(cursor)) return cursor;
  throw configurationError("The list request", ["cursor is not one that a page of this store gave"]);
}
