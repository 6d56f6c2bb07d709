/**
 * @module
 * JSON Pointer (RFC 6901): names one value inside a document, such as `/payment/amount` or `/lines/0/sku`.
 *
 * Invariant: nothing but a document's own members is ever reached, so `/constructor` or `/__proto__` finds
 * nothing that the sender did not put there. A document is never changed.
 */

/** The tokens of a pointer, made by `parsePointer`. */
export type JsonPointer = readonly string[];

/** Reads a pointer; `undefined` if it is not one. The empty pointer names the whole document. */
export function parsePointer(pointer: string): JsonPointer | undefined {
  if (pointer === "") return [];
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer)) return undefined;
  return pointer
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** What the pointer names in `document`; `undefined` if there is nothing. */
export function valueAt(document: unknown, pointer: JsonPointer): unknown {
  let value = document;
  for (const token of pointer) {
    if (!hasMember(value, token)) return undefined;
    value = value[token];
  }
  return value;
}

/** A copy of `document` without what the pointers name. Parts that no pointer goes through are shared, not copied. */
export function without(document: unknown, pointers: readonly JsonPointer[]): unknown {
  return pointers.reduce(withoutOne, document);
}

function withoutOne(document: unknown, pointer: JsonPointer): unknown {
  const [token, ...rest] = pointer;
  if (token === undefined) return undefined;
  if (!hasMember(document, token)) return document;
  const value = rest.length === 0 ? undefined : withoutOne(document[token], rest);
  if (Array.isArray(document)) {
    // The others keep their places: a pointer that follows still names what its author meant.
    return document.map((element, index) => (`${index}` === token ? value : element));
  }
  const members = Object.entries(document).filter(([name]) => name !== token);
  return Object.fromEntries(rest.length === 0 ? members : [...members, [token, value]]);
}

/** §4: in a list a token is an index without leading zeros; `-`, the place after the last, holds nothing. */
function hasMember(value: unknown, token: string): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value) && !/^(?:0|[1-9]\d*)$/.test(token)) return false;
  return Object.hasOwn(value, token);
}
