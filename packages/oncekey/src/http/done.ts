/**
 * @module
 * An answer that a reconciler or an operator gives for work whose own answer was lost.
 *
 * Invariant: what is stored is an answer that can be replayed, or a tombstone if none was given. A program that does not
 * serve the route (an operator's script) stores what it says as `run` would; that is read as an answer, too.
 */
import { decodeResult } from "../core/codec.js";
import { OncekeyError } from "../core/errors.js";
import type { StoredOutcome } from "../core/record.js";
import { decodeSnapshot, encodeSnapshot, type HeaderList, type Snapshot } from "./snapshot.js";

/** `body`: text and bytes go as they are, anything else as JSON. */
export interface DoneAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
}

const encoder = new TextEncoder();
const TOMBSTONE_STATUS = 200;

/** A tombstone, or data, as an instance writes it that does not know the operation. */
const WRITTEN_BY_RUN = /^(?:none|json|value)\/1$/;

/**
 * The answer that is on record, whoever has put it there.
 *
 * @throws OncekeyError `RECORD_UNREADABLE`
 */
export function snapshotOf(outcome: StoredOutcome): Snapshot {
  if (!WRITTEN_BY_RUN.test(outcome.head)) return decodeSnapshot(outcome);
  const said = decodeResult(outcome);
  try {
    return decodeSnapshot(encodeDone(said.kind === "value" ? said.value : undefined));
  } catch (cause) {
    throw noAnswer(cause);
  }
}

function noAnswer(cause: unknown): OncekeyError<"RECORD_UNREADABLE"> {
  const message =
    "What was said to be the result of this operation is not an answer: { status, headers, body }.";
  return new OncekeyError("RECORD_UNREADABLE", message, { cause });
}

/** @throws TypeError if `result` is not an answer. */
export function encodeDone(result: unknown): StoredOutcome {
  if (result === undefined) return encodeSnapshot({ status: TOMBSTONE_STATUS, headers: [], body: undefined });
  if (typeof result !== "object" || result === null || !("status" in result)) {
    throw new TypeError("The result of an HTTP operation is { status, headers, body }");
  }
  const { status, headers = {}, body } = result as DoneAnswer;
  const lines: HeaderList = Object.entries(headers);
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) {
    const bytes = typeof body === "string" ? encoder.encode(body) : (body ?? new Uint8Array(0));
    return encodeSnapshot({ status, headers: lines, body: bytes });
  }
  const typed = lines.some(([name]) => name.toLowerCase() === "content-type");
  const json: HeaderList = typed ? lines : [...lines, ["Content-Type", "application/json"]];
  return encodeSnapshot({ status, headers: json, body: encoder.encode(JSON.stringify(body)) });
}
