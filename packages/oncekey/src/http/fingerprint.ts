/**
 * @module
 * The fingerprint of a request: its method, its path as sent, its query sorted by name, the media type of its
 * body and what the body says.
 *
 * | body | by default it counts by |
 * | --- | --- |
 * | JSON | its canonical form (RFC 8785), numbers by their exact value |
 * | form | its fields, sorted by name |
 * | `multipart/form-data` | its parts (name, file name, type, bytes), sorted by name; not its boundary |
 * | anything else, and whatever is malformed | its bytes |
 *
 * Invariant: requests that differ in one of these differ in their fingerprint, and a retry by the same client
 * does not. An empty body counts as none, whatever its type is said to be. When to compute it (before the
 * handler can change its input) and what to do about a mismatch are left to `exchange.ts` and the core.
 */
import { canonicalText } from "../core/canonical.js";
import { configurationError, unreachable } from "../core/errors.js";
import {
  type Fingerprint,
  type FingerprintTag,
  fingerprintOf,
  fingerprintTag,
  NO_FINGERPRINT,
} from "../core/fingerprint.js";
import { isOptions } from "../core/policy-checks.js";
import { dropped } from "../core/promises.js";
import { byRoot, decode, formDocument } from "./form.js";
import { type JsonPointer, parsePointer, valueAt, without } from "./json-pointer.js";
import { essenceOf } from "./media-type.js";
import { type BodyContent, type RequestBody, readBody, readUnparsed } from "./request-body.js";

export interface FingerprintRequest {
  readonly method: string;
  /** Path and query as sent, mount included (`originalUrl`); an absolute URL is cut to them. */
  readonly target: string;
  readonly contentType: string | undefined;
  readonly body: RequestBody;
}

/**
 * What makes two requests the same:
 *
 * - `"request"`: everything named above.
 * - `"bytes"`: the body by its bytes, also if it is JSON. Cheaper, but a client that spells the same document
 *   anew is refused. A body that only exists parsed is taken as under `"request"`.
 * - `{ fields }`: of a JSON or form body only what these JSON Pointers name.
 * - `{ except }`: the body without what these JSON Pointers name (a time stamp of the client, say).
 * - a function: whatever data it returns, and nothing else.
 * - `"off"`: nothing; a key alone names the request.
 *
 * Pointers apply to JSON and forms; other bodies count whole.
 */
export type FingerprintSetting =
  | "request"
  | "bytes"
  | "off"
  | { readonly fields: readonly string[] }
  | { readonly except: readonly string[] }
  | ((request: FingerprintRequest) => unknown);

export type Fingerprinter = (request: FingerprintRequest) => Fingerprint;

const REQUEST_TAG = fingerprintTag("r1");
const BYTES_TAG = fingerprintTag("b1");
/** Of a body that was too large to be read. It says nothing about one that was read under another limit. */
const SKIPPED_TAG = fingerprintTag("s1");

/**
 * Prepares a setting.
 *
 * The fingerprinter throws only what a function of the setting throws, and `INPUT_UNSUPPORTED` if that
 * function or a parser of the framework gave something that is no data (a promise is none).
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` if there is no such setting, or it names no or malformed pointers.
 */
export function createFingerprinter(setting: FingerprintSetting = "request"): Fingerprinter {
  if (setting === "off") return () => NO_FINGERPRINT;
  if (setting === "request") return fingerprintRequest;
  if (setting === "bytes") return fingerprintBytes;
  if (typeof setting === "function") {
    // A deploy that changes the function changes what equal fingerprints mean; its source text shows that.
    const tag = fingerprintTag("c1", String(setting));
    return (request) => fingerprintOf(tag, [canonicalText(withoutWaiting(setting(request)))]);
  }
  const [name, texts] = selectionOf(setting);
  const pointers = parsePointers(name, texts);
  if (name === "except") {
    const tag = fingerprintTag("x1", texts);
    return fingerprintSelected(tag, (document) => without(document, pointers));
  }
  return fingerprintSelected(fingerprintTag("f1", texts), (document) =>
    pointers.map((pointer) => valueAt(document, pointer)),
  );
}

/** A promise is refused as no data; how it ends must not be nobody's. */
function withoutWaiting(value: unknown): unknown {
  dropped(value);
  return value;
}

const SETTINGS = 'fingerprint must be one of "request", "bytes", "off", { fields }, { except }, a function';

function selectionOf(setting: unknown): ["fields" | "except", readonly unknown[]] {
  const members = isOptions(setting) ? Object.entries(setting) : [];
  const [selection, ...others] = members.filter(([, value]) => value !== undefined);
  const [name, texts] = selection ?? [];
  if ((name !== "fields" && name !== "except") || others.length > 0) {
    throw configurationError("The fingerprint setting", [SETTINGS]);
  }
  if (!Array.isArray(texts)) {
    throw configurationError("The fingerprint setting", [
      `fingerprint.${name} must be a list of JSON Pointers`,
    ]);
  }
  return [name, texts];
}

function parsePointers(name: string, texts: readonly unknown[]): readonly JsonPointer[] {
  const pointers = texts.map((text) => (typeof text === "string" ? parsePointer(text) : undefined));
  const problems = texts
    .filter((_, index) => pointers[index] === undefined)
    .map(
      (text) =>
        `fingerprint.${name}: ${typeof text === "string" ? JSON.stringify(text) : `a ${typeof text}`} is not a JSON Pointer; it starts with "/", such as "/amount"`,
    );
  if (texts.length === 0) problems.push(`fingerprint.${name} names nothing`);
  if (problems.length > 0) throw configurationError("The fingerprint setting", problems);
  return pointers.filter((pointer) => pointer !== undefined);
}

function fingerprintRequest(request: FingerprintRequest): Fingerprint {
  return fingerprintContent(REQUEST_TAG, request, readBody(request.contentType, request.body));
}

function fingerprintBytes(request: FingerprintRequest): Fingerprint {
  const content = readUnparsed(request.body);
  return content === undefined
    ? fingerprintRequest(request)
    : fingerprintContent(BYTES_TAG, request, content);
}

function fingerprintSelected(tag: FingerprintTag, select: (document: unknown) => unknown): Fingerprinter {
  return (request) => {
    const content = readBody(request.contentType, request.body);
    const document = documentOf(content);
    if (document === undefined) return fingerprintContent(tag, request, content);
    const selected = canonicalText(select(document.value));
    return fingerprintOf(tag, [...headOf(request), essenceOf(request.contentType), "selected", selected]);
  };
}

/** What pointers can point into. */
function documentOf(content: BodyContent): { readonly value: unknown } | undefined {
  if (content.kind === "json" || content.kind === "value") return content;
  return content.kind === "form" ? { value: formDocument(content.fields) } : undefined;
}

function fingerprintContent(
  tag: FingerprintTag,
  request: FingerprintRequest,
  content: BodyContent,
): Fingerprint {
  const head = headOf(request);
  const type = essenceOf(request.contentType);
  switch (content.kind) {
    case "none":
      return fingerprintOf(tag, [...head, content.kind]);
    case "json":
    case "value":
      return fingerprintOf(tag, [...head, type, content.kind, canonicalText(content.value)]);
    case "form":
      return fingerprintOf(tag, [...head, type, content.kind, canonicalText(content.fields)]);
    case "multipart":
      return fingerprintOf(tag, [...head, type, content.kind, canonicalText(content.parts)]);
    case "bytes":
      return fingerprintOf(tag, [...head, type, content.kind, content.bytes]);
    case "skipped":
      return fingerprintOf(SKIPPED_TAG, [...head, type, content.kind, `${content.length}`]);
    default:
      return unreachable(content);
  }
}

function headOf({ method, target }: FingerprintRequest): [method: string, path: string, query: string] {
  const local = target.startsWith("/") ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "");
  const fragment = local.indexOf("#");
  const sent = fragment < 0 ? local : local.slice(0, fragment);
  const mark = sent.indexOf("?");
  return mark < 0
    ? [method, sent || "/", ""]
    : [method, sent.slice(0, mark) || "/", sortQuery(sent.slice(mark + 1))];
}

/**
 * By name as it reads, equal names in the order sent, everything in the spelling sent: a retry repeats the spelling, and readers
 * differ about what an odd one means. A query with a name that does not read stays as it is.
 */
function sortQuery(query: string): string {
  if (!query.includes("&")) return query;
  const pairs = query.split("&").filter((pair) => pair !== "");
  try {
    const named = pairs.map((pair) => ({ pair, name: decode(pair.split("=", 1)[0] as string) }));
    return named
      .sort((a, b) => byRoot(a.name, b.name))
      .map(({ pair }) => pair)
      .join("&");
  } catch {
    return pairs.join("&");
  }
}
