/**
 * @module
 * A record as a row of the stores that speak SQL, and back: the same columns in each, in milliseconds. Putting instants into
 * a database's own types is left to each store.
 *
 * Invariant: what is written is checked, and checked again when it is read. A row that is damaged, or that
 * another version wrote, is an error with a code, never taken for "no record": the work would run again.
 */
import { OncekeyError } from "../core/errors.js";
import type { Fingerprint } from "../core/fingerprint.js";
import type {
  ClaimToken,
  Guarantee,
  OnLapse,
  ReconcilerClaim,
  RecordKey,
  RecordState,
  ScopeId,
  StoredOutcome,
  StoredRecord,
} from "../core/record.js";

/** By the names of `COLUMNS`. */
export type RecordRow = Readonly<Record<string, unknown>>;
export type RecordValue = string | number | Uint8Array | null;

/** What this version writes. Version n also reads n - 1. */
export const FORMAT = 1;

/** In the order of `encodeRow`; the two largest come last, so that reading the others does not walk over them. */
export const COLUMNS = [
  "format",
  "key",
  "scope_id",
  "operation",
  "label",
  "state",
  "token",
  "attempt",
  "fingerprint",
  "guarantee",
  "on_lapse",
  "lease_ms",
  "retention_ms",
  "claimed_at",
  "changed_at",
  "lease_ends_at",
  "expires_at",
  "last_code",
  "reconciler_token",
  "reconciler_lease_ends_at",
  "head",
  "body",
] as const;

const STATES: readonly string[] = ["claimed", "unknown", "completed", "released"] satisfies RecordState[];
const GUARANTEES: readonly string[] = ["at-least-once", "at-most-once", "exactly-once"] satisfies Guarantee[];
const ON_LAPSE: readonly string[] = ["takeover", "hold"] satisfies OnLapse[];

/** @throws TypeError if the record breaks its own rules, which no transition does. */
export function encodeRow(record: StoredRecord): RecordValue[] {
  const { outcome, reconciler, expiresAtMs } = record;
  if ((record.state === "completed") !== (outcome !== undefined))
    throw new TypeError("Outcome and state disagree");
  return [
    FORMAT,
    record.key,
    record.scopeId,
    encodeText(record.operation),
    encodeOptional(record.label),
    record.state,
    record.token,
    record.attempt,
    record.fingerprint,
    record.guarantee,
    record.onLapse,
    wholeMs(record.leaseMs),
    wholeMs(record.retentionMs),
    wholeMs(record.claimedAtMs),
    wholeMs(record.changedAtMs),
    wholeMs(record.leaseEndsAtMs),
    expiresAtMs === Number.POSITIVE_INFINITY ? null : wholeMs(expiresAtMs),
    encodeOptional(record.lastCode),
    reconciler?.token ?? null,
    reconciler === undefined ? null : wholeMs(reconciler.leaseEndsAtMs),
    outcome === undefined ? null : encodeText(outcome.head),
    outcome?.body ?? null,
  ];
}

/** @throws OncekeyError `RECORD_UNREADABLE` if the row is damaged or of an unknown version. */
export function decodeRow(row: RecordRow): StoredRecord {
  try {
    return decoded(row);
  } catch (cause) {
    throw unreadable(cause);
  }
}

function unreadable(cause: unknown): OncekeyError<"RECORD_UNREADABLE"> {
  const message =
    "A stored record is damaged or was written by another version of this package. Nothing was run. " +
    "Look at its row, and remove it if its work is known not to have been done.";
  return new OncekeyError("RECORD_UNREADABLE", message, { cause });
}

function decoded(row: RecordRow): StoredRecord {
  if (number(row, "format") !== FORMAT) throw new TypeError(`Unknown format ${String(row.format)}`);
  const state = oneOf(row, "state", STATES) as RecordState;
  const expiresAtMs = row.expires_at === null ? Number.POSITIVE_INFINITY : number(row, "expires_at");
  if (state !== "unknown" && expiresAtMs === Number.POSITIVE_INFINITY) {
    throw new TypeError("Column expires_at and state disagree");
  }
  return {
    key: text(row, "key") as RecordKey,
    scopeId: text(row, "scope_id") as ScopeId,
    operation: decodeText(text(row, "operation")),
    label: optionalText(row, "label"),
    state,
    token: text(row, "token") as ClaimToken,
    attempt: number(row, "attempt"),
    fingerprint: text(row, "fingerprint") as Fingerprint,
    guarantee: oneOf(row, "guarantee", GUARANTEES) as Guarantee,
    onLapse: oneOf(row, "on_lapse", ON_LAPSE) as OnLapse,
    leaseMs: number(row, "lease_ms"),
    retentionMs: number(row, "retention_ms"),
    claimedAtMs: number(row, "claimed_at"),
    changedAtMs: number(row, "changed_at"),
    leaseEndsAtMs: number(row, "lease_ends_at"),
    expiresAtMs,
    outcome: outcomeOf(row, state),
    lastCode: optionalText(row, "last_code"),
    reconciler: reconcilerOf(row),
  };
}

function outcomeOf(row: RecordRow, state: RecordState): StoredOutcome | undefined {
  const head = optionalText(row, "head");
  if ((state === "completed") !== (head !== undefined)) throw new TypeError("Column head and state disagree");
  if (head === undefined) return undefined;
  const body = row.body;
  if (body === null) return { head, body: undefined };
  if (!(body instanceof Uint8Array)) throw new TypeError("Column body is not bytes");
  return { head, body };
}

function reconcilerOf(row: RecordRow): ReconcilerClaim | undefined {
  if (row.reconciler_token === null) return undefined;
  return {
    token: text(row, "reconciler_token") as ClaimToken,
    leaseEndsAtMs: number(row, "reconciler_lease_ends_at"),
  };
}

/** Instants and durations are whole milliseconds in the file; half of one decides nothing. */
function wholeMs(ms: number): number {
  const whole = Math.round(ms);
  if (!Number.isSafeInteger(whole)) throw new TypeError("A time is out of range");
  return whole;
}

/** Text that some client cuts at a NUL, or that UTF-8 cannot hold, and what looks like such text quoted. */
const QUOTED = /^"|[\0\p{Surrogate}]/u;

/** Text as it is wherever that is faithful, so that it can be read in the file; as a JSON string otherwise. */
export function encodeText(value: string): string {
  return QUOTED.test(value) ? JSON.stringify(value) : value;
}

function decodeText(stored: string): string {
  return stored.startsWith('"') ? String(JSON.parse(stored)) : stored;
}

function encodeOptional(value: string | undefined): string | null {
  return value === undefined ? null : encodeText(value);
}

function text(row: RecordRow, column: string): string {
  const value = row[column];
  if (typeof value !== "string") throw new TypeError(`Column ${column} is not text`);
  return value;
}

function optionalText(row: RecordRow, column: string): string | undefined {
  const value = row[column];
  if (value === null) return undefined;
  if (typeof value !== "string") throw new TypeError(`Column ${column} is not text`);
  return decodeText(value);
}

/** A connection may have been set to read integers as `bigint`. */
function number(row: RecordRow, column: string): number {
  const value = row[column];
  const plain = typeof value === "bigint" ? Number(value) : value;
  if (typeof plain !== "number" || !Number.isSafeInteger(plain) || plain < 0) {
    throw new TypeError(`Column ${column} is not a whole number`);
  }
  return plain;
}

function oneOf(row: RecordRow, column: string, allowed: readonly string[]): string {
  const value = text(row, column);
  if (!allowed.includes(value)) throw new TypeError(`Column ${column} holds an unknown word`);
  return value;
}
