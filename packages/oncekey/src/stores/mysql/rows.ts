/**
 * @module
 * A record in MySQL's types: instants as `DATETIME(6)` in UTC, everything else as `stores/rows.ts` has it.
 *
 * Invariant: what does not fit is refused here. The server would cut it off without a word, strict or not, where a
 * statement says `IGNORE`.
 */
import { OncekeyError } from "../../core/errors.js";
import type { StoredOutcome, StoredRecord } from "../../core/record.js";
import { COLUMNS, decodeRow, encodeRow, type RecordRow, type RecordValue } from "../rows.js";
import { MAX_NAME_BYTES, MAX_TEXT_BYTES } from "./schema.js";
import type { Bind, SqlValue } from "./sql.js";

export type Column = (typeof COLUMNS)[number];

const INSTANTS: ReadonlySet<string> = new Set([
  "claimed_at",
  "changed_at",
  "lease_ends_at",
  "expires_at",
  "reconciler_lease_ends_at",
] satisfies Column[]);

const NUMBERS: ReadonlySet<string> = new Set([
  "format",
  "attempt",
  "lease_ms",
  "retention_ms",
] satisfies Column[]);

/** Whether a column is a `DATETIME(6)`. */
export function isInstant(column: Column): boolean {
  return INSTANTS.has(column);
}

/** Whether it is a whole number. */
export function isNumber(column: Column): boolean {
  return NUMBERS.has(column);
}

/** Compared with others, so they have to be plain: a collation finds nothing in them to take for equal. */
const NAMES: ReadonlySet<string> = new Set([
  "key",
  "scope_id",
  "state",
  "token",
  "fingerprint",
  "guarantee",
  "on_lapse",
  "reconciler_token",
] satisfies Column[]);

const TEXTS: ReadonlySet<string> = new Set(["operation", "label", "last_code"] satisfies Column[]);

/** Printable ASCII without spaces, quotes and backslashes. */
const NAME = /^[!-&(-[\]-~]+$/;

/** Instants are counted from here, or from the server's clock as a statement finds it. */
export const EPOCH = "TIMESTAMP'1970-01-01 00:00:00'";
export const SERVER_NOW = "UTC_TIMESTAMP(6)";

/** `key` is a word of SQL. */
function quoted(column: string): string {
  return `\`${column}\``;
}

/** A column of `DATETIME(6)` in whole milliseconds since 1970. */
export function instantOf(expression: string): string {
  return `TIMESTAMPDIFF(MICROSECOND,${EPOCH},${expression}) DIV 1000`;
}

function selected(column: Column): string {
  return INSTANTS.has(column) ? `${instantOf(quoted(column))} AS ${quoted(column)}` : quoted(column);
}

/** What `decodeRecord` needs. */
export const ALL = ["revision", ...COLUMNS.map(selected)].join(",");
/** The same without its body, whose length is read without reading it. */
export const WITHOUT_BODY = [
  "revision",
  ...COLUMNS.filter((column) => column !== "body").map(selected),
  "NULL AS body",
  "LENGTH(body) AS body_bytes",
].join(",");

const INSERTED = `(revision,${COLUMNS.map(quoted).join(",")})`;

/** Adds records, each unless its key is taken. `origin` is what their instants count from. */
export function insertText(
  table: string,
  bind: Bind,
  records: readonly (readonly [record: StoredRecord, revision: number])[],
  origin: string,
): string {
  const rows = records.map(([record, revision]) => {
    const values = encodeRecord(record).map((value, index) => valueText(bind, index, value, origin));
    return `(${revision},${values.join(",")})`;
  });
  return `INSERT IGNORE INTO ${table} ${INSERTED} VALUES ${rows.join(",")}`;
}

/** Writes a record over the one that has its key. What it has to meet is left to the caller. */
export function assignments(bind: Bind, record: StoredRecord, revision: number): string {
  const values = encodeRecord(record).map(
    (value, index) => `${quoted(COLUMNS[index] ?? "")}=${valueText(bind, index, value, EPOCH)}`,
  );
  return [`revision=${revision}`, ...values].join(",");
}

function valueText(bind: Bind, index: number, value: SqlValue, origin: string): string {
  if (value === null) return "NULL";
  const column = COLUMNS[index] ?? "";
  return INSTANTS.has(column) ? `${origin} + INTERVAL ${bind(value)}*1000 MICROSECOND` : bind(value);
}

/** @throws TypeError if a part of it does not fit its column. */
function encodeRecord(record: StoredRecord): RecordValue[] {
  const values = encodeRow(record);
  for (const [index, value] of values.entries()) checkFits(COLUMNS[index] ?? "", value);
  return values;
}

function checkFits(column: string, value: RecordValue): void {
  if (typeof value !== "string") return;
  if (NAMES.has(column) && !(NAME.test(value) && value.length <= MAX_NAME_BYTES)) {
    throw new TypeError(`The ${column} is not 1 to ${MAX_NAME_BYTES} plain characters`);
  }
  if (TEXTS.has(column) && value.length > MAX_TEXT_BYTES / 4 && Buffer.byteLength(value) > MAX_TEXT_BYTES) {
    throw new TypeError(`The ${column} is longer than ${MAX_TEXT_BYTES} bytes`);
  }
}

/** Names a state of a record; drawn at random, so that a record made anew never looks like the one before. */
export function newRevision(): number {
  return 1 + Math.floor(Math.random() * (2 ** 52 - 1));
}

/** @throws OncekeyError `RECORD_UNREADABLE` */
export function decodeRecord(row: RecordRow): StoredRecord {
  const plain: Record<string, unknown> = { ...row };
  for (const column of [...NUMBERS, ...INSTANTS]) {
    // Some settings of a client give long integers as text.
    const value = plain[column];
    if (typeof value === "string") plain[column] = Number(value);
  }
  return decodeRow(plain);
}

export function bodyBytesOf(row: RecordRow): number | undefined {
  const bytes = row.body_bytes;
  return bytes === null || bytes === undefined ? undefined : Number(bytes);
}

/** Written as hexadecimal, a body takes twice its bytes; what else a statement holds is small beside this. */
const STATEMENT_BYTES = 64 * 1_024;

/**
 * The outcome as it fits into one packet: a body that is too large for the server is not retained, so that its key is
 * completed all the same and the work does not run again.
 *
 * @throws OncekeyError `RESULT_TOO_LARGE` if not even the head fits.
 */
export function fittingOutcome(outcome: StoredOutcome, maxPacketBytes: number): StoredOutcome {
  const room = maxPacketBytes - STATEMENT_BYTES;
  const head = 2 * Buffer.byteLength(outcome.head);
  if (head + 2 * (outcome.body?.byteLength ?? 0) <= room) return outcome;
  if (head <= room) return { head: outcome.head, body: undefined };
  const message = `The head of the result takes more than max_allowed_packet (${maxPacketBytes} bytes) of the database.`;
  throw new OncekeyError("RESULT_TOO_LARGE", message);
}
