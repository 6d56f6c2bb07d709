/**
 * @module
 * Reads a `Content-Type` (RFC 9110 §8.3.1): the media type and a parameter of it.
 *
 * Invariant: the media type compares without case and without parameters, so another spelling of the charset
 * or a new multipart boundary is no other type.
 */

/** `application/json` of `Application/JSON; charset=utf-8`; empty if there is none. */
export function essenceOf(contentType: string | undefined): string {
  if (contentType === undefined) return "";
  const end = contentType.indexOf(";");
  return (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
}

/** `application/json` and every type that says so by its suffix (RFC 6839 §3.1). */
export function isJson(essence: string): boolean {
  return essence === "application/json" || essence.endsWith("+json");
}

/** A parameter's value without quotation marks and escapes; the first counts. */
export function parameterOf(contentType: string | undefined, name: string): string | undefined {
  for (const [, found, token, quoted] of contentType?.matchAll(PARAMETER) ?? []) {
    if (found?.toLowerCase() === name) return token ?? quoted?.replaceAll(/\\(.)/g, "$1");
  }
  return undefined;
}

const PARAMETER = /;[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:([^\s;",]+)|"((?:[^"\\]|\\.)*)")/g;

/**
 * The text of bytes that are said to be text; `undefined` if they are none in UTF-8 (RFC 8259 §8.1 knows no
 * other, and body parsers refuse most). A byte order mark is left out.
 */
export function decodeText(contentType: string | undefined, bytes: Uint8Array): string | undefined {
  if (contentType?.includes("charset") && !UTF_8.test(parameterOf(contentType, "charset") ?? "utf-8"))
    return undefined;
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/** US-ASCII is a part of it. */
const UTF_8 = /^(?:utf-?8|us-ascii)$/i;
/** Fatal: what is malformed must not become U+FFFD, which would make different bytes one text. */
const decoder = new TextDecoder("utf-8", { fatal: true });
