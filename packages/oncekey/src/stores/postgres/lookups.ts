/**
 * @module
 * Looking at records without changing them, and removing those that have expired.
 *
 * Pages go by key: the order of the index that is there anyway, in which a record that changes keeps its place. Invariant: one
 * statement looks at a bounded number of rows; bodies are not read.
 */
import { isOncekeyError } from "../../core/errors.js";
import type { RecordKey } from "../../core/record.js";
import type { KeyStatus, ListRequest, RecordPage, Store } from "../../core/store.js";
import { currentRecord, statusOf } from "../../core/transitions.js";
import { foreignCursor, gatherPage, type Placed, ROWS_PER_SLICE } from "../pages.js";
import { COLUMNS, encodeText } from "../rows.js";
import { statusOrFree } from "../unreadable.js";
import { type Place, UNSEEN } from "./changes.js";
import { arrayOf, infoOf, inMs, later, recordOf, type Stored, selected } from "./codec.js";
import type { PostgresParam, PostgresRow } from "./driver.js";
import type { Tables } from "./schema.js";

/** Keys of one statement. */
const MAX_STATUS = 1_000;
/** Removed by one statement, so that its locks are short. */
const PURGE_SLICE = 500;

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
      statusOrFree(() => statusOfRow(recordOf(values), Number(nowMs))),
    ]),
  );
  return keys.map((_, index) => found.get(index) ?? { state: "absent", holder: undefined });
}

interface Condition {
  readonly sql: string;
  readonly params: readonly PostgresParam[];
}

/** @throws OncekeyError `CONFIGURATION_INVALID` for a limit or a cursor that no page gave. */
async function listRecords(place: Place, tables: Tables, request: ListRequest): Promise<RecordPage> {
  const page = await gatherPage(request, keyOfCursor(request.cursor), async (after, most) => {
    const until = await endOfSlice(place, tables, request, after);
    if (until === undefined) return { matches: [], until };
    return { matches: await matchesIn(place, tables, request, { after, until, most }), until };
  });
  return { ...page, cursor: page.cursor && Buffer.from(page.cursor).toString("base64url") };
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

async function matchesIn(
  { run }: Place,
  { records }: Tables,
  request: ListRequest,
  { after, until, most }: { readonly after: string; readonly until: string; readonly most: number },
): Promise<Placed<string>[]> {
  const states = stateCondition(request, 3);
  const others = otherConditions(request, 3 + states.params.length);
  const text = `WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT ${inMs("clock.now")}, ${selected("r", "without-body")} FROM ${records} r CROSS JOIN clock
    WHERE r.key > $1::text AND r.key <= $2::text${states.sql}${others.sql} ORDER BY r.key LIMIT ${most}`;
  const rows = await run({ name: undefined, text }, [after, until, ...states.params, ...others.params]);
  return rows.map(([nowMs, ...values]) => listed(values, Number(nowMs)));
}

function listed(values: PostgresRow, nowMs: number): Placed<string> {
  const key = values[COLUMNS.indexOf("key")] ?? "";
  try {
    const stored = recordOf(values);
    if (stored === undefined) throw new TypeError("A row without a key was listed");
    return { place: key, entry: infoOf(stored, nowMs) };
  } catch (error) {
    if (!isOncekeyError(error, "RECORD_UNREADABLE")) throw error;
    return { place: key, entry: { unreadable: key as RecordKey } };
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

/** A row without a record is a key that a transaction of the application's has claimed and not ended. */
function statusOfRow(stored: Stored | undefined, nowMs: number): KeyStatus {
  return stored === undefined ? { state: "claimed", holder: UNSEEN } : statusOf(stored.record, nowMs);
}

/** A key of ours is a digest, but that of a row which cannot be read may be any text. */
function keyOfCursor(cursor = ""): string {
  const key = Buffer.from(cursor, "base64url");
  if (key.toString("base64url") === cursor && !key.includes(0)) return key.toString();
  throw foreignCursor();
}
