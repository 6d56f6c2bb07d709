/**
 * @module
 * Records as columns of Postgres, and back.
 *
 * Instants are `timestamptz` in the table and whole milliseconds outside; bytes come as base64. So neither the client's
 * parsers nor settings of the database or of a session (`DateStyle`, `TimeZone`, `bytea_output`, …) change what is read.
 * What a row has to look like is left to `rows.ts`.
 */
import type { RecordInfo, StoredRecord } from "../../core/record.js";
import { describeRecord } from "../../core/record.js";
import { COLUMNS, decodeRow, encodeRow } from "../rows.js";
import type { PostgresParam, PostgresRow } from "./driver.js";

type Column = (typeof COLUMNS)[number];

const INSTANTS: ReadonlySet<Column> = new Set<Column>([
  "claimed_at",
  "changed_at",
  "lease_ends_at",
  "expires_at",
  "reconciler_lease_ends_at",
]);
const INTEGERS: ReadonlySet<Column> = new Set<Column>(["format", "attempt", "lease_ms", "retention_ms"]);

/** An instant as milliseconds since 1970. */
export function inMs(instant: string): string {
  return `(extract(epoch FROM ${instant}) * 1000)::bigint::text`;
}

/** An instant `ms` later, where `ms` is an expression for a number. */
export function later(instant: string, ms: string): string {
  return `${instant} + ${ms} * interval '1 millisecond'`;
}

/** The list of a SELECT that `recordOf` reads: the columns, the revision, and the size of the body. */
export function selected(alias: string, body: "with-body" | "without-body"): string {
  const columns = COLUMNS.map((column) => {
    const name = `${alias}.${column}`;
    if (column === "body") return body === "with-body" ? `encode(${name}, 'base64')` : "NULL::text";
    return INSTANTS.has(column) ? inMs(name) : `${name}::text`;
  });
  return [...columns, `${alias}.revision::text`, `octet_length(${alias}.body)::text`].join(", ");
}

export interface Stored {
  readonly record: StoredRecord;
  readonly revision: string;
  /** `undefined`: there is no body. */
  readonly bodyBytes: number | undefined;
}

/**
 * @param values those of `selected`.
 * @returns `undefined` if there is no row.
 * @throws OncekeyError `RECORD_UNREADABLE`
 */
export function recordOf(values: PostgresRow): Stored | undefined {
  const row: Record<string, unknown> = {};
  for (const [index, column] of COLUMNS.entries()) row[column] = decoded(column, values[index] ?? null);
  if (row.key === null) return undefined;
  // Of a claim the end is not stored but follows from its lease.
  if (row.state === "claimed") row.expires_at = Number(row.lease_ends_at) + Number(row.retention_ms);
  const bytes = values[COLUMNS.length + 1];
  return {
    record: decodeRow(row),
    revision: values[COLUMNS.length] ?? "",
    bodyBytes: bytes === null || bytes === undefined ? undefined : Number(bytes),
  };
}

function decoded(column: Column, value: string | null): string | number | Uint8Array | null {
  if (value === null) return null;
  if (INSTANTS.has(column) || INTEGERS.has(column)) return Number(value);
  return column === "body" ? new Uint8Array(Buffer.from(value, "base64")) : value;
}

/** A record that was read without its body, as an operator sees it. */
export function infoOf({ record, bodyBytes }: Stored, nowMs: number): RecordInfo {
  const tombstone = record.state === "completed" && bodyBytes === undefined;
  return { ...describeRecord(record, nowMs), tombstone, resultBytes: bodyBytes ?? 0 };
}

/** What `assigned` takes, in the order of `COLUMNS`. */
export function paramsOf(record: StoredRecord): PostgresParam[] {
  const values = encodeRow(record);
  return COLUMNS.map((column, index) => {
    if (column === "expires_at" && record.state === "claimed") return null;
    const value = values[index] ?? null;
    return typeof value === "number" ? String(value) : value;
  });
}

/** Parameters `$first`, … as values of the columns. */
export function assigned(first: number): string {
  return COLUMNS.map((column, index) => {
    const param = `$${first + index}`;
    if (column === "body") return `${param}::bytea`;
    if (INSTANTS.has(column)) return `to_timestamp(${param}::text::float8 / 1000)`;
    return INTEGERS.has(column) ? `${param}::text::bigint` : `${param}::text`;
  }).join(", ");
}

/** An array of Postgres as text: one parameter for one column of any number of entries. */
export function arrayOf(values: readonly (string | number | null)[]): string {
  const items = values.map((value) => {
    if (value === null) return "NULL";
    return typeof value === "number" ? String(value) : `"${value.replace(/[\\"]/g, "\\$&")}"`;
  });
  return `{${items.join(",")}}`;
}
