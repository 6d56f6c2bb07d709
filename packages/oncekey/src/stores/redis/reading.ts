/**
 * @module
 * The value that Redis keeps under a key, read back as a record.
 *
 * Invariant: what was checked when it was written is checked again here. A value that is damaged, or that another version
 * wrote, is an error with a code, never "no record": the work would run again.
 */
import { OncekeyError } from "../../core/errors.js";
import type { Fingerprint } from "../../core/fingerprint.js";
import type {
  ClaimToken,
  ReconcilerClaim,
  RecordKey,
  RecordState,
  ScopeId,
  StoredOutcome,
  StoredRecord,
} from "../../core/record.js";
import { FORMAT, GUARANTEES, HEAD_LINE_BYTES, type Meta, ON_LAPSE, PLACES } from "./layout.js";

const STATES: Readonly<Record<string, RecordState>> = {
  C: "claimed",
  U: "unknown",
  D: "completed",
  R: "released",
};

/** When a key expires, by the server's clock; `NEVER` if it does not. */
export type ExpiresAtMs = number;
export const NEVER: ExpiresAtMs = -1;

/** What of a value precedes its head and body, which is all that an operator or a waiter needs. */
export interface Glance {
  readonly record: StoredRecord;
  /** `undefined`: there is no body. */
  readonly bodyBytes: number | undefined;
}

/** @throws OncekeyError `RECORD_UNREADABLE` if the value is damaged or of an unknown version. */
export function decodeRecord(key: RecordKey, value: Buffer, expiresAtMs: ExpiresAtMs): StoredRecord {
  return legibly(() => {
    const line = readLine(value, value.length);
    return recordOf(key, line, value, outcomeIn(line, value), expiresAtMs);
  });
}

/**
 * The same of the first part of a value alone: a completed record looks like a tombstone.
 *
 * @param totalBytes of the whole value.
 */
export function decodeGlance(
  key: RecordKey,
  start: Buffer,
  totalBytes: number,
  expiresAtMs: ExpiresAtMs,
): Glance {
  return legibly(() => {
    const line = readLine(start, totalBytes);
    const outcome = line.state === "completed" ? { head: "", body: undefined } : undefined;
    const bodyBytes = line.hasBody ? totalBytes - line.bodyFrom : undefined;
    return { record: recordOf(key, line, start, outcome, expiresAtMs), bodyBytes };
  });
}

function legibly<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw unreadable(cause);
  }
}

export function unreadable(cause: unknown): OncekeyError<"RECORD_UNREADABLE"> {
  const message =
    "What is stored under a key is damaged, was written by another version of this package, or is somebody else's. " +
    "Nothing was run. Look at the key, and delete it if its work is known not to have been done.";
  return new OncekeyError("RECORD_UNREADABLE", message, { cause });
}

interface HeadLine {
  readonly state: RecordState;
  readonly line: string;
  readonly headKind: string;
  readonly hasBody: boolean;
  readonly tokenTo: number;
  readonly metaTo: number;
  readonly bodyFrom: number;
}

function readLine(value: Buffer, totalBytes: number): HeadLine {
  const line = value.toString("latin1", 0, HEAD_LINE_BYTES);
  if (!line.startsWith(FORMAT)) throw new TypeError("Unknown format");
  const state = STATES[part(line, "state")];
  if (state === undefined) throw new TypeError("Unknown state");
  const headKind = part(line, "headKind");
  const bodyKind = part(line, "bodyKind");
  if ((state === "completed") !== (headKind === "T" || headKind === "J")) {
    throw new TypeError("Head and state disagree");
  }
  const tokenTo = HEAD_LINE_BYTES + number(line, "tokenBytes");
  const metaTo = tokenTo + number(line, "metaBytes");
  const bodyFrom = metaTo + number(line, "headBytes");
  const hasBody = bodyKind === "B";
  if (hasBody ? totalBytes < bodyFrom : totalBytes !== bodyFrom) throw new TypeError("Sizes disagree");
  return { state, line, headKind, hasBody, tokenTo, metaTo, bodyFrom };
}

function recordOf(
  key: RecordKey,
  { line, state, tokenTo, metaTo }: HeadLine,
  value: Buffer,
  outcome: StoredOutcome | undefined,
  expiresAtMs: ExpiresAtMs,
): StoredRecord {
  const meta = JSON.parse(value.toString("utf8", tokenTo, metaTo)) as Meta;
  const [guarantee, onLapse] = [GUARANTEES[meta[4]], ON_LAPSE[meta[5]]];
  if (guarantee === undefined || onLapse === undefined) throw new TypeError("Unknown guarantee");
  if ((state === "unknown") !== (expiresAtMs === NEVER)) throw new TypeError("Expiry and state disagree");
  const leaseMs = number(line, "leaseMs");
  const retentionMs = number(line, "retentionMs");
  const claimEndsAtMs = expiresAtMs - retentionMs;
  const claimedAtMs = number(line, "claimedAtMs") || claimEndsAtMs - leaseMs;
  const changedAtMs =
    number(line, "changedAtMs") || (state === "completed" ? expiresAtMs - retentionMs : claimedAtMs);
  return {
    key,
    scopeId: text(meta[0]) as ScopeId,
    operation: text(meta[1]),
    label: meta[2] ?? undefined,
    state,
    token: value.toString("utf8", HEAD_LINE_BYTES, tokenTo) as ClaimToken,
    attempt: number(line, "attempt"),
    fingerprint: text(meta[3]) as Fingerprint,
    guarantee,
    onLapse,
    leaseMs,
    retentionMs,
    claimedAtMs,
    changedAtMs,
    leaseEndsAtMs: leaseEndOf(state, meta, claimEndsAtMs, changedAtMs),
    expiresAtMs: state === "unknown" ? Number.POSITIVE_INFINITY : expiresAtMs,
    outcome,
    lastCode: meta[6] ?? undefined,
    reconciler: state === "unknown" ? reconcilerOf(meta) : undefined,
  };
}

function leaseEndOf(state: RecordState, meta: Meta, claimEndsAtMs: number, changedAtMs: number): number {
  if (state === "claimed") return claimEndsAtMs;
  if (state !== "unknown") return changedAtMs;
  if (typeof meta[7] !== "number") throw new TypeError("An unknown record without the end of its lease");
  return meta[7];
}

function reconcilerOf(meta: Meta): ReconcilerClaim | undefined {
  const [token, leaseEndsAtMs] = [meta[8], meta[9]];
  if (token === null || leaseEndsAtMs === null) return undefined;
  return { token: token as ClaimToken, leaseEndsAtMs };
}

function outcomeIn(
  { headKind, hasBody, metaTo, bodyFrom }: HeadLine,
  value: Buffer,
): StoredOutcome | undefined {
  if (headKind === "-") return undefined;
  const stored = value.toString("utf8", metaTo, bodyFrom);
  return {
    head: headKind === "J" ? text(JSON.parse(stored)) : stored,
    // A copy: the client's own buffer may be large, and whoever gets a body may change it.
    body: hasBody ? new Uint8Array(value.subarray(bodyFrom)) : undefined,
  };
}

function part(line: string, name: keyof typeof PLACES): string {
  const [from, to] = PLACES[name];
  return line.slice(from, to);
}

function number(line: string, name: keyof typeof PLACES): number {
  const value = part(line, name);
  if (!/^\d+$/.test(value)) throw new TypeError(`${name} is not a number`);
  return Number(value);
}

function text(value: unknown): string {
  if (typeof value !== "string") throw new TypeError("A text is missing");
  return value;
}
