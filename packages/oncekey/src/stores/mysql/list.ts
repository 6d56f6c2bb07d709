/**
 * @module
 * Paging through records for operators.
 *
 * Pages go by the key, which never changes, so the traffic beside them neither hides nor repeats a record. Invariant: bodies
 * are never read.
 */
import { isOncekeyError } from "../../core/errors.js";
import type { RecordKey } from "../../core/record.js";
import type { ListRequest, RecordPage } from "../../core/store.js";
import { foreignCursor, gatherPage, type Placed, ROWS_PER_SLICE, type Slice } from "../pages.js";
import { encodeText, type RecordRow } from "../rows.js";
import type { Database } from "./database.js";
import { infoOf } from "./lookups.js";
import { NOW, nowOf } from "./records.js";
import { SERVER_NOW, WITHOUT_BODY } from "./rows.js";
import { literal } from "./sql.js";

/** @throws OncekeyError `CONFIGURATION_INVALID` for a limit or a cursor that no page gave. */
export async function listRecords(database: Database, request: ListRequest): Promise<RecordPage> {
  return gatherPage(request, keyOfCursor(request.cursor), (after, most) =>
    readSlice(database, request, after, most),
  );
}

async function readSlice(
  { tables, ask }: Database,
  request: ListRequest,
  after: string,
  most: number,
): Promise<Slice<string>> {
  const range = `\`key\`>${literal(after)}${stateCondition(request)}`;
  const bounded = `(SELECT \`key\` FROM ${tables.records} WHERE ${range} ORDER BY \`key\` LIMIT ${ROWS_PER_SLICE}) AS slice`;
  const matching = `SELECT ${WITHOUT_BODY} FROM ${bounded} JOIN ${tables.records} USING (\`key\`)
    WHERE ${otherConditions(request)} ORDER BY \`key\` LIMIT ${most}`;
  const end = `SELECT MAX(\`key\`) AS last_key,COUNT(*) AS looked_at FROM ${bounded}`;
  const results = (await ask([NOW, end, matching].join(";"))) as readonly (readonly RecordRow[])[];
  const nowMs = nowOf(results[0] ?? []);
  const [bounds] = results[1] ?? [];
  const matches = (results[2] ?? []).map((row) => placedOf(row, nowMs));
  if (matches.length === most) return { matches, until: matches.at(-1)?.place };
  const isLast = Number(bounds?.looked_at ?? 0) < ROWS_PER_SLICE;
  return { matches, until: isLast ? undefined : String(bounds?.last_key) };
}

function placedOf(row: RecordRow, nowMs: number): Placed<string> {
  const key = row.key as RecordKey;
  try {
    return { place: key, entry: infoOf(row, nowMs) };
  } catch (error) {
    if (!isOncekeyError(error, "RECORD_UNREADABLE")) throw error;
    return { place: key, entry: { unreadable: key } };
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

function keyOfCursor(cursor: string | undefined): string {
  if (cursor === undefined) return "";
  if (/^[!-&(-[\]-~]{1,255}$/.test(cursor)) return cursor;
  throw foreignCursor();
}
