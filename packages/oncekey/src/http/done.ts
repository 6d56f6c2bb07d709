/**
 * @module
 * An answer that a reconciler or an operator gives for work whose own answer was lost.
 *
 * Invariant: what is stored is an answer that can be replayed, or a tombstone if none was given.
 */
import type { StoredOutcome } from "../core/record.js";
import { encodeSnapshot, type HeaderList } from "./snapshot.js";

/** `body`: text and bytes go as they are, anything else as JSON. */
export interface DoneAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
}

const encoder = new TextEncoder();
const TOMBSTONE_STATUS = 200;

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
