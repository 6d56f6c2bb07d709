/**
 * @module
 * A record as the one value that Redis keeps under its key, as it is written.
 *
 * ```
 * O1 S h b  claimedAt changedAt lease retention attempt  token meta head  | token | meta | head | body
 * ```
 *
 * The head line is ASCII of fixed width, so that a script can check and change its parts by their place and never has to
 * understand the rest. Instants and durations are milliseconds of the server's clock. When a claim's lease ends is not in
 * it: it is the key's own expiry less the retention.
 *
 * Invariant: a released layout is never edited; another one gets another `FORMAT`. Reading is left to `reading.ts`.
 */
import { isUtf8 } from "node:buffer";
import type { Guarantee, OnLapse, RecordState, StoredOutcome, StoredRecord } from "../../core/record.js";
import type { ClaimIdentity } from "../../core/store.js";

/** Begins every value of this version. */
export const FORMAT = "O1";
export const LETTERS = {
  claimed: "C",
  unknown: "U",
  completed: "D",
  released: "R",
} as const satisfies Record<RecordState, string>;
export const GUARANTEES: readonly Guarantee[] = ["at-least-once", "at-most-once", "exactly-once"];
export const ON_LAPSE: readonly OnLapse[] = ["takeover", "hold"];

/** Places in the head line: where each part begins, and where it ends. */
export const PLACES = {
  state: [2, 3],
  headKind: [3, 4],
  bodyKind: [4, 5],
  claimedAtMs: [5, 18],
  changedAtMs: [18, 31],
  leaseMs: [31, 43],
  retentionMs: [43, 55],
  attempt: [55, 61],
  tokenBytes: [61, 64],
  metaBytes: [64, 70],
  headBytes: [70, 79],
} as const satisfies Record<string, readonly [from: number, to: number]>;
export const HEAD_LINE_BYTES = 79;

/** An instant that the value leaves open: the expiry says when a claim that was not renewed was made, or when it was completed. */
export const OPEN = "0".repeat(13);
const NO_HEAD = "000000000";
/** Longer ones are copied less often as they are. */
const MAX_TEXT_BYTES = 64 * 1024;
/** UTF-8 cannot hold half of a surrogate pair. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** `[scopeId, operation, label, fingerprint, guarantee, onLapse, lastCode, leaseEndsAtMs, reconciler's token, its lease's end]` */
export type Meta = readonly [
  string,
  string,
  string | null,
  string,
  number,
  number,
  string | null,
  number | null,
  string | null,
  number | null,
];

/** The value of a new claim. Its instants are left to the server. */
export function encodeClaim(request: ClaimIdentity): string {
  const { token, scopeId, operation, label, fingerprint, guarantee, onLapse } = request;
  const meta = JSON.stringify([
    scopeId,
    operation,
    label ?? null,
    fingerprint,
    GUARANTEES.indexOf(guarantee),
    ON_LAPSE.indexOf(onLapse),
    null,
    null,
    null,
    null,
  ] satisfies Meta);
  const times = durations(request.leaseMs, request.retentionMs);
  return `${FORMAT}C--${OPEN}${OPEN}${times}000001${sizes(token, meta)}${NO_HEAD}${token}${meta}`;
}

/** @throws TypeError if the record breaks its own rules, which no transition does. */
export function encodeRecord(record: StoredRecord): Buffer {
  const { outcome, reconciler, token, state } = record;
  if ((state === "completed") !== (outcome !== undefined)) throw new TypeError("Outcome and state disagree");
  const meta = JSON.stringify([
    record.scopeId,
    record.operation,
    record.label ?? null,
    record.fingerprint,
    GUARANTEES.indexOf(record.guarantee),
    ON_LAPSE.indexOf(record.onLapse),
    record.lastCode ?? null,
    state === "unknown" ? Math.round(record.leaseEndsAtMs) : null,
    reconciler?.token ?? null,
    reconciler === undefined ? null : Math.round(reconciler.leaseEndsAtMs),
  ] satisfies Meta);
  const instants = digits(record.claimedAtMs, 13) + digits(record.changedAtMs, 13);
  const times = durations(record.leaseMs, record.retentionMs);
  const { kinds, headBytes, text } = encodeOutcome(outcome);
  const start = `${FORMAT}${LETTERS[state]}${kinds}${instants}${times}${digits(record.attempt, 6)}${sizes(token, meta)}${headBytes}${token}${meta}`;
  return Buffer.concat([Buffer.from(start), Buffer.from(text as string)]);
}

export interface EncodedOutcome {
  /** Kind of head and kind of body, as they stand in the head line. */
  readonly kinds: string;
  readonly headBytes: string;
  /** The head and the body behind it. */
  readonly text: string | Buffer;
}

const NO_OUTCOME: EncodedOutcome = { kinds: "--", headBytes: NO_HEAD, text: "" };

export function encodeOutcome(outcome: StoredOutcome | undefined): EncodedOutcome {
  if (outcome === undefined) return NO_OUTCOME;
  const faithful = !LONE_SURROGATE.test(outcome.head);
  const head = faithful ? outcome.head : JSON.stringify(outcome.head);
  const { body } = outcome;
  return {
    kinds: `${faithful ? "T" : "J"}${body === undefined ? "-" : "B"}`,
    headBytes: digits(Buffer.byteLength(head), 9),
    text: body === undefined ? head : withBody(head, body),
  };
}

/** Text wherever that is faithful: clients send one text much faster than parts of which some are bytes. */
function withBody(head: string, body: Uint8Array): string | Buffer {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const isText = bytes.length <= MAX_TEXT_BYTES && isUtf8(bytes);
  return isText ? head + bytes.toString() : Buffer.concat([Buffer.from(head), bytes]);
}

function durations(leaseMs: number, retentionMs: number): string {
  return digits(leaseMs, 12) + digits(retentionMs, 12);
}

function sizes(token: string, meta: string): string {
  return digits(Buffer.byteLength(token), 3) + digits(Buffer.byteLength(meta), 6);
}

/** A whole number in a fixed number of digits. */
export function digits(value: number, width: number): string {
  const whole = Math.round(value);
  if (!(whole >= 0 && whole < 10 ** width)) throw new TypeError("A number is out of range");
  return String(whole).padStart(width, "0");
}
