/**
 * @module
 * Paging through records for operators.
 *
 * Pages go by the key, which never changes, so the traffic beside them neither hides nor repeats a record. Invariants: one
 * read looks at a bounded number of rows, however few of them match; bodies are never read. A row that cannot be read takes
 * its place on the page by its key, so that it hides none of the others.
 */
import { configurationError, isOncekeyError } from "../../core/errors.js";
import { MAX_PAGE } from "../../core/limits.js";
import type { RecordInfo, RecordKey } from "../../core/record.js";
import type { ListRequest, RecordPage } from "../../core/store.js";
import { encodeText, type RecordRow } from "../rows.js";
import type { Database } from "./database.js";
import { infoOf } from "./lookups.js";
import { NOW, nowOf } from "./records.js";
import { SERVER_NOW, WITHOUT_BODY } from "./rows.js";
import { literal } from "./sql.js";

/** Rows that one read looks at. */
const ROWS_PER_READ = 1_000;

interface Listed {
  readonly key: RecordKey;
  /** `undefined`: it cannot be read. */
  readonly info: RecordInfo | undefined;
}

/** @throws OncekeyError `CONFIGURATION_INVALID` for a limit or a cursor that no page gave. */
export async function listRecords(database: Database, request: ListRequest): Promise<RecordPage> {
  const limit = checkedLimit(request.limit);
  const found: Listed[] = [];
  let after = keyOfCursor(request.cursor);
  // One more than asked shows whether there is another page.
  while (found.length <= limit) {
    const slice = await readSlice(database, request, after, limit + 1 - found.length);
    found.push(...slice.listed);
    if (slice.lastKey === undefined) break;
    after = slice.lastKey;
  }
  const page = found.slice(0, limit);
  const unreadable = page.flatMap(({ key, info }) => (info === undefined ? [key] : []));
  return {
    records: page.flatMap(({ info }) => info ?? []),
    ...(unreadable.length > 0 && { unreadable }),
    cursor: found.length > limit ? page.at(-1)?.key : undefined,
  };
}

interface Slice {
  readonly listed: readonly Listed[];
  /** Up to where it looked; `undefined`: there are no more. */
  readonly lastKey: string | undefined;
}

async function readSlice(
  { tables, ask }: Database,
  request: ListRequest,
  after: string,
  missing: number,
): Promise<Slice> {
  const range = `\`key\`>${literal(after)}${stateCondition(request)}`;
  const bounded = `(SELECT \`key\` FROM ${tables.records} WHERE ${range} ORDER BY \`key\` LIMIT ${ROWS_PER_READ}) AS slice`;
  const matching = `SELECT ${WITHOUT_BODY} FROM ${bounded} JOIN ${tables.records} USING (\`key\`)
    WHERE ${otherConditions(request)} ORDER BY \`key\` LIMIT ${missing}`;
  const end = `SELECT MAX(\`key\`) AS last_key,COUNT(*) AS looked_at FROM ${bounded}`;
  const results = (await ask([NOW, end, matching].join(";"))) as readonly (readonly RecordRow[])[];
  const nowMs = nowOf(results[0] ?? []);
  const [bounds] = results[1] ?? [];
  const listed = (results[2] ?? []).map((row) => listedOf(row, nowMs));
  if (listed.length === missing) return { listed, lastKey: listed.at(-1)?.key };
  const isLast = Number(bounds?.looked_at ?? 0) < ROWS_PER_READ;
  return { listed, lastKey: isLast ? undefined : String(bounds?.last_key) };
}

function listedOf(row: RecordRow, nowMs: number): Listed {
  const key = row.key as RecordKey;
  try {
    return { key, info: infoOf(row, nowMs) };
  } catch (error) {
    if (!isOncekeyError(error, "RECORD_UNREADABLE")) throw error;
    return { key, info: undefined };
  }
}

function stateCondition({ state }: ListRequest): string {
  if (state === undefined) return "";
  return ` AND state=${literal(state === "lapsed" ? "claimed" : state)}`;
}

function otherConditions({ scopeId, operation, state, olderThanMs }: ListRequest): string {
  const conditions = [`(expires_at IS NULL OR expires_at>${SERVER_NOW})`];
  if (state === "lapsed") conditions.push(`lease_ends_at<=${SERVER_NOW}`);
  if (scopeId !== undefined) conditions.push(`scope_id=${literal(scopeId)}`);
  // As bytes: a collation may take a trailing space for nothing.
  if (operation !== undefined) conditions.push(`CAST(operation AS BINARY)=${bytesText(operation)}`);
  if (olderThanMs !== undefined) {
    conditions.push(`changed_at<=${SERVER_NOW} - INTERVAL ${literal(olderThanMs)}*1000 MICROSECOND`);
  }
  return conditions.join(" AND ");
}

function bytesText(text: string): string {
  return literal(Buffer.from(encodeText(text), "utf8"));
}

function checkedLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE) return limit;
  throw configurationError("The list request", [`limit is a whole number from 1 to ${MAX_PAGE}`]);
}

function keyOfCursor(cursor: string | undefined): string {
  if (cursor === undefined) return "";
  if (/^[!-&(-[\]-~]{1,255}$/.test(cursor)) return cursor;
  throw configurationError("The list request", ["cursor is not one that a page of this store gave"]);
}
