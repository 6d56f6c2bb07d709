/**
 * @module
 * Reads what a Fastify request carries: as its parser left it, or before a parser takes it that does not keep it.
 *
 * Invariant: JSON, forms and text are looked at as they were parsed, everything else by its bytes, which are put back.
 */
import type { FastifyRequest } from "fastify";
import { fieldLines, peekBody } from "./node-request.js";
import type { BodyReading } from "./port.js";

const NONE: readonly string[] = [];
/** What is parsed into a value that says all that was sent. */
const KEPT_BY_PARSERS =
  /^\s*(?:application\/(?:[\w.-]+\+)?json|application\/x-www-form-urlencoded|text\/plain)\s*(?:;|$)/i;

/** A body that has to be looked at before its parser: multipart, uploads, whatever may be streamed away. */
export function isTakenByParser({ raw: { headers } }: FastifyRequest): boolean {
  return hasBody(headers) && !KEPT_BY_PARSERS.test(headers["content-type"] ?? "");
}

function hasBody(headers: FastifyRequest["raw"]["headers"]): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Before the parser. */
export function unparsedBody({ raw }: FastifyRequest, maxBytes: number): Promise<BodyReading> {
  return peekBody(raw, maxBytes);
}

/** After the parser, and before validation. What a parser took without a declared length it took within its own limit. */
export function parsedBody({ raw, body }: FastifyRequest, maxBytes: number): BodyReading {
  const length = Number(raw.headers["content-length"]);
  if (length > maxBytes) return { kind: "too-large", length };
  if (body === undefined) return hasBody(raw.headers) ? { kind: "gone" } : { kind: "none" };
  const isStream = typeof body === "object" && body !== null && "pipe" in body;
  return isStream ? { kind: "gone" } : { kind: "parsed", value: body };
}

/** Node joins two lines into one value, with a comma. */
export function linesOfRequest({ raw }: FastifyRequest, name: string): readonly string[] {
  const value = raw.headers[name];
  if (value === undefined) return NONE;
  return typeof value === "string" && !value.includes(",") ? [value] : fieldLines(raw, name);
}
