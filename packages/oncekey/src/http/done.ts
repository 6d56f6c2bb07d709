/**
 * @module
 * An answer that a reconciler or an operator gives for work whose own answer was lost.
 *
 * Invariant: what is stored is an answer that can be replayed, or a tombstone if none was given; what cannot be written down at
 * once (a `Response`, a stream) is refused, never stored as something else. A program that does not serve the route (an
 * operator's script) stores what it says as `run` would; that is read as an answer, too.
 */
import { decodeResult } from "../core/codec.js";
import { OncekeyError } from "../core/errors.js";
import type { StoredOutcome } from "../core/record.js";
import type { HeaderLine } from "./answer.js";
import { keepHeaders } from "./kept-headers.js";
import { decodeSnapshot, encodeSnapshot, type HeaderList, type Snapshot } from "./snapshot.js";

/** A list gives a name several lines; a number is written as text. */
type HeaderValue = string | number | readonly (string | number)[];

/** What a reconciler or an operator gives as the result of an HTTP operation. */
export interface HttpResult {
  readonly status: number;
  /**
   * An object, a list of pairs, or `Headers`. What belongs to one connection or one client is left out, as of any answer;
   * so is a `Content-Encoding`, unless the body is bytes, which then have to be coded so (`fetch` gives them decoded).
   */
  readonly headers?:
    | Readonly<Record<string, HeaderValue>>
    | Iterable<readonly [name: string, value: HeaderValue]>
    | undefined;
  /** Text and bytes go as they are, anything else as JSON. A `Response`, a stream or a `Blob` has to be read first. */
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

/** @throws TypeError if `result` is not an answer, saying what of it is not. */
export function encodeDone(result: unknown): StoredOutcome {
  if (result === undefined) return encodeSnapshot({ status: TOMBSTONE_STATUS, headers: [], body: undefined });
  const { status, headers = {}, body } = answerOf(result);
  const given = keepHeaders([], linesOf(headers));
  const bytes = bytesOf(body);
  if (bytes !== undefined) return encodeSnapshot({ status, headers: given, body: bytes });
  // Text is coded in no way, whatever the headers say: those of a fetched response name the coding that fetch has undone.
  const lines = given.filter(([name]) => !isNamed(name, "content-encoding"));
  if (typeof body === "string") return encodeSnapshot({ status, headers: lines, body: encoder.encode(body) });
  const typed = lines.some(([name]) => isNamed(name, "content-type"));
  const json: HeaderList = typed ? lines : [...lines, ["Content-Type", "application/json"]];
  return encodeSnapshot({ status, headers: json, body: encoder.encode(jsonOf(body)) });
}

function isNamed(name: string, wanted: string): boolean {
  return name.toLowerCase() === wanted;
}

function answerOf(result: unknown): HttpResult {
  if (typeof result !== "object" || result === null || !("status" in result)) {
    throw new TypeError("The result of an HTTP operation is { status, headers, body }");
  }
  if ("arrayBuffer" in result) {
    throw new TypeError(
      "A Response cannot be the result of an HTTP operation, since its body has yet to be read. Give " +
        "{ status: response.status, headers: response.headers, body: await response.text() }",
    );
  }
  return result as HttpResult;
}

function linesOf(headers: unknown): HeaderList {
  if (typeof headers !== "object" || headers === null) throw noHeaders();
  const members: unknown[] =
    Symbol.iterator in headers ? [...(headers as Iterable<unknown>)] : Object.entries(headers);
  return members.flatMap((member): HeaderLine[] => {
    if (!Array.isArray(member) || member.length !== 2 || typeof member[0] !== "string") throw noHeaders();
    const [name, value] = member as [string, unknown];
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    return values.map((each) => [name, textOf(name, each)]);
  });
}

function noHeaders(): TypeError {
  return new TypeError("The headers of a result are an object, a list of [name, value], or Headers");
}

function textOf(name: string, value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  throw new TypeError(
    `The header ${JSON.stringify(name)} of a result must be a text, a number, or a list of these`,
  );
}

/** The bytes of a body that is given as bytes, or not at all. */
function bytesOf(body: unknown): Uint8Array | undefined {
  if (body === undefined) return new Uint8Array(0);
  if (body instanceof Uint8Array) return body;
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  return ArrayBuffer.isView(body) ? new Uint8Array(body.buffer, body.byteOffset, body.byteLength) : undefined;
}

function jsonOf(body: unknown): string {
  const json: unknown = JSON.stringify(body, (_, value: unknown) => {
    if (isJson(value)) return value;
    throw noData(value);
  });
  if (typeof json === "string") return json;
  throw noData(body);
}

function noData(value: unknown): TypeError {
  return new TypeError(
    `The body of a result must be text, bytes, or data for JSON; read a ${nameOf(value)} first, and give what it holds`,
  );
}

/** Of a stream, a `Blob`, a `Map` or an error, JSON would tell nothing (`{}`); nor of a number that is none (`null`). */
function isJson(body: unknown): boolean {
  if (typeof body === "number") return Number.isFinite(body);
  if (typeof body !== "object" || body === null) return true;
  if ("toJSON" in body || Array.isArray(body)) return true;
  return nameOf(body) === "Object" && !(Symbol.asyncIterator in body);
}

/** What JavaScript calls it: "ReadableStream", say. */
function nameOf(body: unknown): string {
  return Object.prototype.toString.call(body).slice("[object ".length, -1);
}
