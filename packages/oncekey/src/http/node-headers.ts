/**
 * @module
 * Header lines of a Node response: read as a list, put back from a list, and a whole answer sent from one.
 *
 * Invariant: a list keeps the order, the case of the names and every value of a name that has several. Lines
 * that Node adds by itself (`Date`, `Connection`, the framing) are not in it. Which lines belong to an answer
 * is left to the caller.
 */
import type { ClientRequest, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { type HeaderLine, SHARED_LISTS, type WholeAnswer } from "./answer.js";

export type { HeaderLine, WholeAnswer } from "./answer.js";

/** The three forms that `writeHead` takes: an object, a flat list of names and values, a list of pairs. */
export type HeadFields =
  | OutgoingHttpHeaders
  | readonly OutgoingHttpHeader[]
  | readonly (readonly OutgoingHttpHeader[])[];

/** Every line that is set now, in order. */
export function headerLines(res: ServerResponse): HeaderLine[] {
  const lines: HeaderLine[] = [];
  // The types know it on requests only; responses have had it since Node 15.4.
  const { getRawHeaderNames } = res as ServerResponse & Pick<ClientRequest, "getRawHeaderNames">;
  for (const name of getRawHeaderNames.call(res)) {
    const value = res.getHeader(name);
    if (Array.isArray(value)) for (const one of value) lines.push([name, one]);
    else if (value !== undefined) lines.push([name, String(value)]);
  }
  return lines;
}

/**
 * Sets the fields given to `writeHead`, in whichever form. A name given there replaces what was set before; a
 * name given twice keeps both values.
 */
export function setFields(res: ServerResponse, fields: HeadFields): void {
  const given = new Set<string>();
  for (const [name, value] of pairsOf(fields)) {
    const key = name.toLowerCase();
    if (given.has(key)) res.appendHeader(name, Array.isArray(value) ? value : String(value));
    else res.setHeader(name, value);
    given.add(key);
  }
}

/** Makes the lines exactly those of `lines`, except that what rules the connection stays. */
export function resetLines(res: ServerResponse, lines: readonly HeaderLine[]): void {
  // Node never sends a Date again once one was removed.
  const { sendDate } = res;
  for (const name of res.getHeaderNames()) {
    if (name !== "connection" && name !== "keep-alive") res.removeHeader(name);
  }
  res.sendDate = sendDate;
  setFields(res, lines);
}

/**
 * Sends `answer` on a response that has not begun, beside the headers that are set on it already.
 *
 * @param end what ends the response, where `res.end` is not to be used.
 */
export function sendAnswer(
  res: ServerResponse,
  { status, headers, body }: WholeAnswer,
  end: (body: Uint8Array) => void = (bytes) => res.end(bytes),
): void {
  res.statusCode = status;
  // Node puts the usual phrase for an empty one.
  res.statusMessage = "";
  setFields(
    res,
    headers.map(([name, value]) => [name, beside(res, name, value)]),
  );
  if (hasContent(status)) res.setHeader("Content-Length", body.byteLength);
  end(body);
}

function beside(res: ServerResponse, name: string, value: string): string {
  const before = SHARED_LISTS.has(name.toLowerCase()) ? res.getHeader(name) : undefined;
  return before === undefined ? value : `${String(before)}, ${value}`;
}

/** RFC 9110 §6.4.1: these end with their head, whatever the header says. */
export function hasContent(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 304;
}

/** Whatever else they are given as, `setHeader` refuses as Node's own `writeHead` would. */
type Field = readonly [name: string, value: OutgoingHttpHeader];

function pairsOf(fields: HeadFields): readonly Field[] {
  if (!isList(fields)) return Object.entries(fields) as Field[];
  if (Array.isArray(fields[0])) return fields as unknown as Field[];
  const pairs: Field[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    pairs.push(fields.slice(index, index + 2) as unknown as Field);
  }
  return pairs;
}

function isList(fields: HeadFields): fields is Exclude<HeadFields, OutgoingHttpHeaders> {
  return Array.isArray(fields);
}
