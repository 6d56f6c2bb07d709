/**
 * @module
 * One text for one value: the canonical form that fingerprints are made of.
 *
 * For JSON data it is exactly RFC 8785 (JSON Canonicalization Scheme), at any depth. Other data extends it by
 * forms that start with `#`, which no JSON value does, so the two never meet: `#undefined`, `#NaN`,
 * `#bigint:1`, `#date:0`, `#map[[key,value]]`, `#set[element]`, `#bytes:…`.
 *
 * Invariant: equal texts mean equal data. The order in which members, entries and elements were added does
 * not matter, nor does the class of an object; a member that is `undefined` is absent, and `-0` is `0`
 * (RFC 8785 §3.2.2.3). A lone surrogate, for which RFC 8785 has no form, is written as its escape (`\ud800`).
 * Reading JSON from text is left to `http/canonical-json.ts`.
 */
import { sha256 } from "#platform";
import { type Members, quote, quoteName, sortedNames } from "./canonical-names.js";
import { OncekeyError } from "./errors.js";

/** Below this depth recursion ends and a list of frames goes on: the platform's stack is never at risk. */
const RECURSION_LIMIT = 128;

/** Instances hold the text that stands for them. */
const literalPrototype: object = Object.freeze(Object.create(null));

/**
 * A value whose canonical text is `text`: how a number that no double can hold keeps its digits. The text has
 * to differ from whatever `canonicalText` writes for any other value.
 */
export function canonicalLiteral(text: string): object {
  return Object.create(literalPrototype, { text: { value: text } });
}

/** @throws OncekeyError `INPUT_UNSUPPORTED` if `value` holds something that is not data, or holds itself. */
export function canonicalText(value: unknown): string {
  try {
    return write(value, 0);
  } catch (error) {
    // Cycles of arrays and objects are found below; those through maps, sets and `toJSON` end here.
    if (error instanceof RangeError) throw unsupported("holds itself or is nested too deeply", error);
    throw error;
  }
}

function write(value: unknown, depth: number): string {
  switch (typeof value) {
    case "string":
      return quote(value);
    case "number":
      return Number.isFinite(value) ? `${value}` : `#${value}`;
    case "boolean":
      return value ? "true" : "false";
    case "undefined":
      return "#undefined";
    case "bigint":
      return `#bigint:${value}`;
    case "object":
      return value === null ? "null" : writeObject(value, depth);
    default:
      throw unsupported(`holds a ${typeof value}`);
  }
}

function writeObject(value: object, depth: number): string {
  const shape = shapeOf(value);
  if (shape === "special") return writeSpecial(value, depth + 1);
  if (depth >= RECURSION_LIMIT) return writeDeep(value);
  return shape === "list"
    ? writeList(value as unknown[], depth + 1)
    : writeMembers(value as Members, depth + 1);
}

function writeList(values: readonly unknown[], depth: number): string {
  let text = "[";
  for (let index = 0; index < values.length; index++) {
    if (index > 0) text += ",";
    text += write(values[index], depth);
  }
  return `${text}]`;
}

function writeMembers(members: Members, depth: number): string {
  let text = "{";
  for (const name of sortedNames(members)) {
    const value = members[name];
    if (value === undefined) continue;
    if (text.length > 1) text += ",";
    text += quoteName(name) + write(value, depth);
  }
  return `${text}}`;
}

interface Frame {
  readonly container: object;
  /** `undefined` for a list. */
  readonly names: readonly string[] | undefined;
  readonly length: number;
  next: number;
}

/**
 * Writes what `writeList` and `writeMembers` write, without recursion. Whoever holds itself is deeper than
 * any limit, so this is also the one place that has to look out for it.
 */
function writeDeep(root: object): string {
  const frames: Frame[] = [];
  const open = new Set<object>();
  let text = "";
  const enter = (container: object): void => {
    if (open.has(container)) throw unsupported("holds itself");
    open.add(container);
    const frame = frameOf(container);
    frames.push(frame);
    text += frame.names === undefined ? "[" : "{";
  };
  enter(root);
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const { container, names, length, next } = frame;
    if (next === length) {
      text += names === undefined ? "]" : "}";
      open.delete(container);
      frames.pop();
      continue;
    }
    frame.next++;
    if (next > 0) text += ",";
    const name = names?.[next];
    if (name !== undefined) text += quoteName(name);
    const child = (container as Record<string | number, unknown>)[name ?? next];
    if (typeof child === "object" && child !== null && shapeOf(child) !== "special") enter(child);
    else text += write(child, 0);
  }
  return text;
}

function frameOf(container: object): Frame {
  if (Array.isArray(container)) return { container, names: undefined, length: container.length, next: 0 };
  const members = container as Members;
  const names = sortedNames(members).filter((name) => members[name] !== undefined);
  return { container, names, length: names.length, next: 0 };
}

/** Written by their content. An `Error` is here to be refused: its message and stack are not members. */
const SPECIAL_KINDS: ReadonlySet<string> = new Set([
  "Date",
  "Map",
  "Set",
  "ArrayBuffer",
  "SharedArrayBuffer",
  "String",
  "Number",
  "Boolean",
  "Error",
]);

/** `special`: written by `writeSpecial`, which also refuses what is not data. */
function shapeOf(value: object): "list" | "members" | "special" {
  if (Array.isArray(value)) return "list";
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return "members";
  if (prototype === literalPrototype || ArrayBuffer.isView(value) || SPECIAL_KINDS.has(kindOf(value)))
    return "special";
  if (typeof (value as { readonly toJSON?: unknown }).toJSON === "function") return "special";
  // An instance that shows no member keeps its data where nobody can see it: two of them would look alike.
  return Object.keys(value).length > 0 ? "members" : "special";
}

/** `Map`, `Date`, …: unlike `instanceof` it also knows those of another realm. */
function kindOf(value: object): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}

function writeSpecial(value: object, depth: number): string {
  if (Object.getPrototypeOf(value) === literalPrototype) return (value as { readonly text: string }).text;
  const kind = kindOf(value);
  if (ArrayBuffer.isView(value)) {
    const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    return writeBytes(kind === "Uint8Array" || kind === "DataView" ? "bytes" : kind, bytes);
  }
  switch (kind) {
    case "ArrayBuffer":
    case "SharedArrayBuffer":
      return writeBytes("bytes", new Uint8Array(value as ArrayBuffer));
    case "Date":
      return `#date:${(value as Date).getTime()}`;
    case "Map":
      return `#map${writeSorted([...(value as Map<unknown, unknown>)], depth)}`;
    case "Set":
      return `#set${writeSorted([...(value as Set<unknown>)], depth)}`;
    case "String":
    case "Number":
    case "Boolean":
      return write(value.valueOf(), depth);
  }
  const { toJSON } = value as { readonly toJSON?: unknown };
  if (typeof toJSON === "function") return write(toJSON.call(value, ""), depth);
  throw unsupported(`holds a ${value.constructor?.name || kind}, whose content cannot be seen`);
}

function writeBytes(kind: string, bytes: Uint8Array): string {
  return `#${kind}:${bytes.byteLength}:${sha256(bytes)}`;
}

function writeSorted(values: readonly unknown[], depth: number): string {
  return `[${values
    .map((value) => write(value, depth))
    .sort()
    .join(",")}]`;
}

function unsupported(what: string, cause?: unknown): OncekeyError<"INPUT_UNSUPPORTED"> {
  return new OncekeyError(
    "INPUT_UNSUPPORTED",
    `The input ${what}, so it has no fingerprint. Give plain data, or set \`fingerprint: "off"\`.`,
    { cause },
  );
}
