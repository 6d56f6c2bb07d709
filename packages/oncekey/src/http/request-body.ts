/**
 * @module
 * What a request's body says, however an adapter could get hold of it.
 *
 * Invariant: the same body gives the same content whether it arrives as bytes, as text or parsed by the
 * framework, as far as those still tell it (a parsed number has lost what a double cannot hold). What cannot
 * be read as its media type says is taken by its bytes; nothing here throws, whatever a client sent.
 */
import { unreachable } from "../core/errors.js";
import { parseJsonText } from "./canonical-json.js";
import { type FormField, flattenForm, parseForm } from "./form.js";
import { decodeText, essenceOf, isJson, parameterOf } from "./media-type.js";
import { type FormPart, parseMultipart } from "./multipart.js";

/** A body as an adapter has it. Bytes are best: nothing has been lost yet. */
export type RequestBody =
  | { readonly kind: "none" }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  /** The body's whole text, decoded as UTF-8 but not parsed. */
  | { readonly kind: "text"; readonly text: string }
  /** What the framework's parser made of it: a JSON value, a form as an object, a text, a `Buffer`. */
  | { readonly kind: "parsed"; readonly value: unknown }
  /** Larger than may be read. `length` as the client declared it. */
  | { readonly kind: "skipped"; readonly length: number | undefined };

export type BodyContent =
  | { readonly kind: "none" }
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "form"; readonly fields: readonly FormField[] }
  | { readonly kind: "multipart"; readonly parts: readonly FormPart[] }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  /** Made by a parser of the framework's own, for a media type that this file does not read. */
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "skipped"; readonly length: number | undefined };

const FORM = "application/x-www-form-urlencoded";
const MULTIPART = "multipart/form-data";

const encoder = new TextEncoder();

/** Bodies that were read for the sake of the key in them: the fingerprint is taken of the same. */
const alreadyRead = new WeakMap<RequestBody, BodyContent>();

/** Reads a body in which the key is, once for both purposes. */
export function readBodyOfKey(contentType: string | undefined, body: RequestBody): BodyContent {
  const content = readBody(contentType, body);
  if (body.kind === "bytes" || body.kind === "text") alreadyRead.set(body, content);
  return content;
}

/** Reads a body as its media type says. */
export function readBody(contentType: string | undefined, body: RequestBody): BodyContent {
  const known = alreadyRead.get(body);
  if (known !== undefined) return known;
  switch (body.kind) {
    case "none":
    case "skipped":
      return body;
    case "bytes":
      return readBytes(contentType, body.bytes);
    case "text":
      return readText(contentType, body.text);
    case "parsed":
      return readParsed(contentType, body.value);
    default:
      return unreachable(body);
  }
}

/** Takes a body by its bytes, whatever its media type; `undefined` if it only exists parsed. */
export function readUnparsed(body: RequestBody): BodyContent | undefined {
  if (body.kind === "none" || body.kind === "skipped") return body;
  const bytes = bytesOf(body);
  if (bytes === undefined) return undefined;
  return bytes.byteLength === 0 ? { kind: "none" } : { kind: "bytes", bytes };
}

function bytesOf(body: Exclude<RequestBody, { readonly kind: "none" | "skipped" }>): Uint8Array | undefined {
  if (body.kind === "bytes") return body.bytes;
  if (body.kind === "text") return encoder.encode(body.text);
  return typeof body.value === "string" ? encoder.encode(body.value) : asBytes(body.value);
}

function readBytes(contentType: string | undefined, bytes: Uint8Array): BodyContent {
  if (bytes.byteLength === 0) return { kind: "none" };
  const essence = essenceOf(contentType);
  if (essence === MULTIPART) {
    const parts = parseMultipart(bytes, parameterOf(contentType, "boundary"));
    return parts === undefined ? { kind: "bytes", bytes } : { kind: "multipart", parts };
  }
  const text = isJson(essence) || essence === FORM ? decodeText(contentType, bytes) : undefined;
  return (text === undefined ? undefined : parseText(essence, text)) ?? { kind: "bytes", bytes };
}

function readText(contentType: string | undefined, text: string): BodyContent {
  if (text === "") return { kind: "none" };
  const essence = essenceOf(contentType);
  if (essence === MULTIPART) return readBytes(contentType, encoder.encode(text));
  return parseText(essence, text) ?? { kind: "bytes", bytes: encoder.encode(text) };
}

function parseText(essence: string, text: string): BodyContent | undefined {
  if (isJson(essence)) {
    const json = parseJsonText(text);
    return json && { kind: "json", value: json.value };
  }
  if (essence !== FORM) return undefined;
  const fields = parseForm(text);
  return fields && { kind: "form", fields };
}

function readParsed(contentType: string | undefined, value: unknown): BodyContent {
  if (value === undefined) return { kind: "none" };
  const bytes = asBytes(value);
  if (bytes !== undefined) return readBytes(contentType, bytes);
  const essence = essenceOf(contentType);
  if (isJson(essence)) return { kind: "json", value };
  if (typeof value === "string") return readText(contentType, value);
  if (essence === FORM && typeof value === "object" && value !== null) {
    return { kind: "form", fields: flattenForm(value) };
  }
  return { kind: "value", value };
}

function asBytes(value: unknown): Uint8Array | undefined {
  if (value instanceof Uint8Array) return value;
  return value instanceof ArrayBuffer ? new Uint8Array(value) : undefined;
}
