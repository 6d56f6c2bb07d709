/**
 * @module
 * Takes a `multipart/form-data` body apart (RFC 7578, RFC 2046 §5.1).
 *
 * Invariant: parts come with their exact bytes, sorted by name, what may become one list in the order sent; the boundary,
 * which is new for every request, is not in them. The reading is strict: text before the first boundary or
 * after the last, a part without a name, a missing boundary, and whatever readers understand in different ways (a header or
 * parameter given twice, a coding of transfer) make the body malformed, and the caller takes it by its bytes. So two bodies
 * that count as one are one for every reader. Decoding the parts is left to the handler's parser.
 */
import { byRoot } from "./form.js";

export interface FormPart {
  readonly name: string;
  readonly filename: string | undefined;
  readonly contentType: string | undefined;
  readonly bytes: Uint8Array;
}

/** More parts than any form has; a body of nothing but boundaries is taken by its bytes. */
const MAX_PARTS = 10_000;
const MAX_HEADER_BYTES = 16_384;
const CR = 13;
const LF = 10;
const DASH = 45;

/** The parts of a body, or `undefined` if it is malformed. The bytes are views, not copies. */
export function parseMultipart(
  body: Uint8Array,
  boundary: string | undefined,
): readonly FormPart[] | undefined {
  // RFC 2046 §5.1.1: 1 to 70 characters.
  if (boundary === undefined || !/^[ -~]{1,70}$/.test(boundary)) return undefined;
  const delimiter = Uint8Array.from(`\r\n--${boundary}`, (character) => character.charCodeAt(0));
  const parts: FormPart[] = [];
  // The first boundary stands at the very start, without the line break before it.
  if (!startsWith(body, 0, delimiter.subarray(2))) return undefined;
  let position = delimiter.length - 2;
  while (parts.length <= MAX_PARTS) {
    const start = afterBoundary(body, position);
    if (start === "end") return parts.sort((a, b) => byRoot(a.name, b.name));
    if (start === undefined) return undefined;
    const end = find(body, delimiter, start);
    const part = end === undefined ? undefined : readPart(body.subarray(start, end));
    if (end === undefined || part === undefined) return undefined;
    parts.push(part);
    position = end + delimiter.length;
  }
  return undefined;
}

/** Where the part behind a boundary starts; `end` behind the last one, `undefined` if neither follows. */
function afterBoundary(body: Uint8Array, position: number): number | "end" | undefined {
  if (body[position] === DASH && body[position + 1] === DASH) {
    const rest = body.length - position - 2;
    return rest === 0 || (rest === 2 && isLineBreak(body, position + 2)) ? "end" : undefined;
  }
  // Space before the line break is allowed ("transport padding"), and nobody sends it.
  return isLineBreak(body, position) ? position + 2 : undefined;
}

function isLineBreak(body: Uint8Array, position: number): boolean {
  return body[position] === CR && body[position + 1] === LF;
}

const HEADERS_END = Uint8Array.of(CR, LF, CR, LF);

function readPart(part: Uint8Array): FormPart | undefined {
  const end = find(part.subarray(0, MAX_HEADER_BYTES), HEADERS_END, 0);
  if (end === undefined) return undefined;
  const headers = readHeaders(latin1(part.subarray(0, end)));
  const disposition = headers?.get("content-disposition") ?? "";
  const parameters = parametersOf(disposition);
  const name = parameters?.get("name");
  if (headers === undefined || parameters === undefined || name === undefined) return undefined;
  if (!/^form-data\s*;/i.test(disposition)) return undefined;
  return {
    name,
    filename: filenameOf(parameters.get("filename*"), parameters.get("filename")),
    contentType: headers.get("content-type"),
    bytes: part.subarray(end + HEADERS_END.length),
  };
}

/** Of two names some readers take the one, and some the other. */
function filenameOf(extended: string | undefined, plain: string | undefined): string | undefined {
  return extended !== undefined && plain !== undefined
    ? JSON.stringify([extended, plain])
    : (extended ?? plain);
}

/** A line of a part: a token (RFC 9110 §5.6.2), a colon, a value. A line that begins with a space continues another, for some. */
const LINE = /^([\w!#$%&'*+.^`|~-]+):(.*)$/s;

/** The headers of a part by their names in lower case; `undefined` if one comes twice, or says that the bytes are coded. */
function readHeaders(text: string): ReadonlyMap<string, string> | undefined {
  const headers = new Map<string, string>();
  for (const line of text.split("\r\n")) {
    const [, name, value = ""] = LINE.exec(line) ?? [];
    if (name === undefined || headers.has(name.toLowerCase())) return undefined;
    headers.set(name.toLowerCase(), value.trim());
  }
  // RFC 7578 §4.7: senders should not; of its readers some decode, and some do not.
  return headers.has("content-transfer-encoding") ? undefined : headers;
}

/**
 * As sent: senders differ in how they escape, a sender does not differ from itself. `undefined` if a parameter comes twice.
 */
function parametersOf(disposition: string): ReadonlyMap<string, string> | undefined {
  const parameters = new Map<string, string>();
  for (const [, found = "", quoted, token = ""] of disposition.matchAll(
    /;\s*([\w*-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))/g,
  )) {
    if (parameters.has(found.toLowerCase())) return undefined;
    parameters.set(found.toLowerCase(), quoted ?? token);
  }
  return parameters;
}

/** One character for each byte: nothing is lost, whatever the charset is. */
function latin1(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

function find(bytes: Uint8Array, wanted: Uint8Array, from: number): number | undefined {
  const first = wanted[0] as number;
  for (let at = bytes.indexOf(first, from); at >= 0; at = bytes.indexOf(first, at + 1)) {
    if (startsWith(bytes, at, wanted)) return at;
  }
  return undefined;
}

function startsWith(bytes: Uint8Array, at: number, wanted: Uint8Array): boolean {
  if (at + wanted.length > bytes.length) return false;
  for (let index = 0; index < wanted.length; index++) {
    if (bytes[at + index] !== wanted[index]) return false;
  }
  return true;
}
