/**
 * @module
 * Finds the key of a request in the sources its route names, in their order.
 *
 * Invariant: the first source that has something decides; what it has is either a valid key or a refusal, never a
 * reason to look further.
 */
import { OncekeyError } from "../core/errors.js";
import { saidAtOnce } from "../core/policy.js";
import { formDocument } from "./form.js";
import { parsePointer, valueAt } from "./json-pointer.js";
import { type KeyReading, readKeyField, readKeyValue } from "./key-syntax.js";
import type { KeySource, Route } from "./options.js";
import type { HttpRequest } from "./port.js";
import { type RequestBody, readBodyOfKey } from "./request-body.js";

/**
 * The key, or `undefined` if there is none and the route runs such requests unprotected.
 *
 * @throws OncekeyError `KEY_MISSING` or `KEY_INVALID`.
 */
export function readKey<C>(
  route: Route<C>,
  request: HttpRequest<C>,
  body: RequestBody | undefined,
): string | undefined {
  for (const source of route.keys) {
    const reading = readFrom(source, route, request, body);
    if (reading.kind === "key") return reading.key;
    if (reading.kind === "invalid") throw new OncekeyError("KEY_INVALID", reading.reason);
  }
  if (route.onMissingKey === "run") return undefined;
  throw new OncekeyError(
    "KEY_MISSING",
    `This operation needs an idempotency key (${route.keys.map(nameOf).join(", or ")}).`,
  );
}

function readFrom<C>(
  source: KeySource<C>,
  { maxKeyLength }: Route<C>,
  request: HttpRequest<C>,
  body: RequestBody | undefined,
): KeyReading {
  if (typeof source === "function") {
    return readKeyValue(saidAtOnce(source(request.carrier)), maxKeyLength);
  }
  if ("header" in source) return readKeyField(request.lines(source.header.toLowerCase()), maxKeyLength);
  if ("query" in source) {
    const values = queryOf(request.target).getAll(source.query);
    return readKeyValue(values.length > 1 ? values : values[0], maxKeyLength);
  }
  return readKeyValue(memberOf(source.body, request, body), maxKeyLength);
}

function queryOf(target: string): URLSearchParams {
  const start = target.indexOf("?");
  return new URLSearchParams(start === -1 ? "" : target.slice(start + 1));
}

function memberOf<C>(pointer: string, request: HttpRequest<C>, body: RequestBody | undefined): unknown {
  const path = parsePointer(pointer);
  if (path === undefined || body === undefined) return undefined;
  const content = readBodyOfKey(request.lines("content-type")[0], body);
  if (content.kind === "json" || content.kind === "value") return valueAt(content.value, path);
  return content.kind === "form" ? valueAt(formDocument(content.fields), path) : undefined;
}

function nameOf<C>(source: KeySource<C>): string {
  if (typeof source === "function") return "as this service defines it";
  if ("header" in source) return `header ${source.header}`;
  return "query" in source ? `query parameter ${source.query}` : `body member ${source.body}`;
}
