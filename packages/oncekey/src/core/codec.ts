/**
 * @module
 * How a result of `run` is stored and given back.
 *
 * It holds JSON data and `undefined`, `-0`, `NaN`, the infinities, `bigint`, `Date`, `Map`, `Set`, bytes
 * (`Uint8Array`, `Buffer`, every other view, `ArrayBuffer`), the standard errors with all their members,
 * arrays with holes, objects without a prototype, repeated references and cycles. Invariant: what is read back
 * is that value, or nothing was kept; never a similar one. An instance of any other class, a function, a
 * symbol, a getter, a hidden member, a Proxy is not kept: the user maps it with a `ResultCodec` first.
 *
 * Not part of a value: whether it is frozen or read-only, the stack of an error, what of its buffer a view
 * does not show, and the realm an object comes from.
 */
import { isProxy } from "#platform";
import { builtInOf, bytesFrom } from "./built-ins.js";
import { OncekeyError, ReplayedError } from "./errors.js";
import { readLossless, writeLossless } from "./lossless.js";
import type { StoredOutcome } from "./record.js";
import { NotKept, type NotKeptReason, survey, surveyBytes } from "./survey.js";

/**
 * Maps a result to data and back: instances of one's own classes, or a later version of `T` that reads an
 * earlier one. `decode(encode(value))` should equal `value`.
 */
export interface ResultCodec<T> {
  encode(value: T): unknown;
  decode(value: unknown): T;
}

export type EncodedResult =
  | { readonly kind: "encoded"; readonly outcome: StoredOutcome }
  | {
      readonly kind: "not-kept";
      readonly reason: NotKeptReason;
      /** What it is about the result, never a part of it: "holds a Proxy". */
      readonly detail: string;
    };

export type DecodedResult =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "error"; readonly error: ReplayedError }
  | { readonly kind: "tombstone" };

/** Stored for a completed call whose result could not be kept. */
export const RESULT_TOMBSTONE: StoredOutcome = { head: "none/1", body: undefined };

const encoder = new TextEncoder();
/** A byte order mark at the start is not ours, and nothing is replaced in silence. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Writes a result. Never throws, and runs nothing of the caller's. */
export function encodeResult(value: unknown, maxBytes: number): EncodedResult {
  return guarded(() => {
    const bytes = encodeBytes(value, maxBytes);
    if (bytes !== undefined) return bytes;
    const { plain } = survey(value, maxBytes);
    // If somebody gave every object or array a `toJSON`, JSON would write what that returns.
    if (plain && !("toJSON" in Array.prototype)) return encoded("json/1", JSON.stringify(value), maxBytes);
    return encoded("value/1", writeLossless(value), maxBytes);
  });
}

/** Bytes alone are stored as they are, a quarter smaller than in a text. */
function encodeBytes(value: unknown, maxBytes: number): EncodedResult | undefined {
  if (typeof value !== "object" || value === null || isProxy(value)) return undefined;
  const builtIn = builtInOf(value);
  if (builtIn?.kind !== "bytes") return undefined;
  const bytes = surveyBytes(value);
  if (bytes.byteLength > maxBytes) return tooLarge();
  return { kind: "encoded", outcome: { head: `bytes/1 ${builtIn.name}`, body: bytes.slice() } };
}

/**
 * Writes what the work threw, as the name, message and code that a `ReplayedError` has. Anything else that
 * was thrown becomes a message. Never throws.
 */
export function encodeError(error: unknown, maxBytes: number): EncodedResult {
  return guarded(() => encoded("error/1", JSON.stringify(describeThrown(error)), maxBytes));
}

type Thrown = Pick<ReplayedError, "name" | "message" | "code">;

/** The members of an error may be of any type; numbers are codes at many clients (gRPC, MySQL). */
function describeThrown(error: unknown): Thrown {
  if (typeof error !== "object" || error === null)
    return { name: "Error", message: String(error), code: undefined };
  const { name, message, code } = error as Readonly<Record<string, unknown>>;
  return {
    name: typeof name === "string" ? name : "Error",
    message: typeof message === "string" ? message : "",
    code: typeof code === "string" || typeof code === "number" ? `${code}` : undefined,
  };
}

/**
 * Reads a stored result. Each call gives a value of its own.
 *
 * @throws OncekeyError `RECORD_UNREADABLE` if it is damaged, or of a format that this version does not know.
 */
export function decodeResult({ head, body }: StoredOutcome): DecodedResult {
  if (body === undefined) return { kind: "tombstone" };
  let result: DecodedResult | undefined;
  try {
    result = read(head, body);
  } catch {
    // biome-ignore lint/style/useErrorCause: what a JSON parser says quotes the text.
    throw new OncekeyError("RECORD_UNREADABLE", "The stored result is damaged.");
  }
  if (result !== undefined) return result;
  throw new OncekeyError(
    "RECORD_UNREADABLE",
    "The stored result has a format that this version cannot read. Was it written by a later version, or by an HTTP adapter?",
  );
}

/** @returns `undefined` if the format is not known. */
function read(head: string, body: Uint8Array): DecodedResult | undefined {
  const [format, name = ""] = head.split(" ", 2);
  switch (format) {
    case "json/1":
      return { kind: "value", value: JSON.parse(decoder.decode(body)) };
    case "value/1":
      return { kind: "value", value: readLossless(decoder.decode(body)) };
    case "bytes/1":
      return { kind: "value", value: bytesFrom(name, Uint8Array.from(body).buffer) };
    case "error/1":
      return { kind: "error", error: readError(JSON.parse(decoder.decode(body))) };
    default:
      return undefined;
  }
}

function readError(written: unknown): ReplayedError {
  const { name, message, code } = Object(written) as Readonly<Record<string, unknown>>;
  if (typeof name !== "string" || typeof message !== "string")
    throw new TypeError("Not an error as it was written");
  return new ReplayedError(name, message, typeof code === "string" ? code : undefined);
}

function encoded(head: string, text: string, maxBytes: number): EncodedResult {
  // A character takes at least one byte.
  if (text.length > maxBytes) return tooLarge();
  const body = encoder.encode(text);
  return body.byteLength > maxBytes ? tooLarge() : { kind: "encoded", outcome: { head, body } };
}

function tooLarge(): EncodedResult {
  return { kind: "not-kept", reason: "too-large", detail: "is larger than allowed" };
}

function guarded(encode: () => EncodedResult): EncodedResult {
  try {
    return encode();
  } catch (error) {
    if (error instanceof NotKept) return { kind: "not-kept", reason: error.reason, detail: error.message };
    // Memory that was given away, a stack that is nearly full, a getter of a thrown object that throws.
    return { kind: "not-kept", reason: "unsupported", detail: "cannot be read" };
  }
}
