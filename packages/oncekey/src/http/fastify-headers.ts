/**
 * @module
 * Header lines of a Fastify reply: read as a list, and put back from one.
 *
 * Invariant: a list keeps the order and every value of a name that has several. Fastify spells names in lower case.
 */
import type { FastifyReply } from "fastify";
import { type HeaderLine, SHARED_LISTS, type WholeAnswer } from "./answer.js";
import { bufferOf, cheapestBody } from "./text-bytes.js";

/** What `reply.getHeaders()` gives: those of the reply and those that were set on the raw response. */
export type ReplyHeaders = Readonly<Record<string, number | string | string[] | undefined>>;

export function linesOf(headers: ReplyHeaders): HeaderLine[] {
  const lines: HeaderLine[] = [];
  for (const name in headers) {
    const value = headers[name];
    if (Array.isArray(value)) for (const one of value) lines.push([name, String(one)]);
    else if (value !== undefined) lines.push([name, String(value)]);
  }
  return lines;
}

/**
 * Whether a body has to go as bytes: Node writes a head together with a text in the encoding of the text, which makes other
 * bytes of a field beyond ASCII.
 */
export function needsBytes(lines: readonly HeaderLine[]): boolean {
  return lines.some(([, value]) => /[^\0-\x7f]/.test(value));
}

/** Makes status and headers exactly what they were. */
export function restoreHead(reply: FastifyReply, status: number, headers: ReplyHeaders): void {
  for (const name in reply.getHeaders()) reply.removeHeader(name);
  reply.raw.statusCode = status;
  reply.headers(headers);
}

/** Sets status and headers of `answer` beside what outer layers have set, and gives its body as Fastify wants it. */
export function setAnswer(
  reply: FastifyReply,
  { status, headers, body }: WholeAnswer,
): string | Buffer | null {
  reply.code(status);
  headers.forEach(([spelled, value], index) => {
    const name = spelled.toLowerCase();
    const isShared = SHARED_LISTS.has(name);
    const adds = isShared || headers.findIndex(([other]) => other.toLowerCase() === name) < index;
    // Fastify itself adds to this one.
    const before = adds && name !== "set-cookie" ? reply.getHeader(name) : undefined;
    if (before === undefined) reply.header(name, value);
    else if (isShared) reply.header(name, `${String(before)}, ${value}`);
    else reply.header(name, [before, value].flat());
  });
  // Fastify would give an empty body a type.
  if (body.byteLength === 0) return null;
  return needsBytes(headers) ? bufferOf(body) : cheapestBody(body);
}
