/**
 * @module
 * Looks through a result before it is written, and says whether it can be kept at all.
 *
 * Invariant: what passes is data to the last detail, so that reading it back gives the same value. Nothing of
 * the caller's is run: members are looked at through their descriptors, so that no getter and no proxy trap
 * is called. Whether an object is frozen, sealed or read-only is not looked at. Writing is left to `lossless.ts`.
 */
import { isProxy } from "#platform";
import {
  type BuiltIn,
  builtInOf,
  bytesOf,
  isArrayPrototype,
  isObjectPrototype,
  sharesMemory,
} from "./built-ins.js";
import { unreachable } from "./errors.js";

/** Reading back recurses too, and maybe from a deeper stack: a fixed depth is one that fits both times. */
const MAX_DEPTH = 500;
/**
 * On a list that is longer than this, hidden names are not looked for, which takes five times as long as
 * writing it (bytes: 9 ms per 64 KiB). The lists that have them (`raw` of a template string) are short.
 */
const MAX_NAMES = 4_096;

export type NotKeptReason = "too-large" | "unsupported";

/** Ends a survey. Never leaves the codec. */
export class NotKept extends Error {
  readonly reason: NotKeptReason;

  constructor(reason: NotKeptReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}

interface Walk {
  readonly seen: Set<object>;
  readonly openErrors: Set<object>;
  readonly shown: Uint8Array[];
  /** Each text, number and element costs no more than JSON takes for it, also where it is written only once. */
  bytesLeft: number;
  plain: boolean;
}

export interface Survey {
  /** Whether JSON alone says it all: a tree of members and elements, texts, numbers, booleans and `null`. */
  readonly plain: boolean;
}

/**
 * Looks at everything that `value` holds, once.
 *
 * @throws NotKept if it cannot be kept, because it holds something that is not data or is too large.
 */
export function survey(value: unknown, maxBytes: number): Survey {
  const walk: Walk = {
    seen: new Set(),
    openErrors: new Set(),
    shown: [],
    bytesLeft: maxBytes,
    plain: true,
  };
  visit(walk, value, 0);
  if (walk.shown.length > 1 && sharesMemory(walk.shown)) throw unsupported("bytes that share their memory");
  return walk;
}

function visit(walk: Walk, value: unknown, depth: number): void {
  switch (typeof value) {
    case "string":
      spend(walk, value.length + 2);
      break;
    case "number":
      if (!Number.isFinite(value) || Object.is(value, -0)) walk.plain = false;
      spend(walk, 1);
      break;
    case "boolean":
      spend(walk, 4);
      break;
    case "undefined":
      walk.plain = false;
      spend(walk, 2);
      break;
    case "bigint":
      walk.plain = false;
      // Base 16 takes linear time, and the decimal text is longer.
      spend(walk, value.toString(16).length);
      break;
    case "object":
      if (value === null) spend(walk, 4);
      else visitObject(walk, value, depth);
      break;
    default:
      throw unsupported(`a ${typeof value}`);
  }
}

function visitObject(walk: Walk, value: object, depth: number): void {
  if (isProxy(value)) throw unsupported("a Proxy");
  spend(walk, 1);
  if (walk.seen.has(value)) {
    // An error is made once everything in it has been read, so it cannot be in itself.
    if (walk.openErrors.has(value)) throw unsupported("an error that holds itself");
    walk.plain = false;
    return;
  }
  if (depth === MAX_DEPTH) throw unsupported(`more than ${MAX_DEPTH} levels`);
  walk.seen.add(value);
  const prototype: object | null = Object.getPrototypeOf(value);
  if (Array.isArray(value)) {
    if (!isArrayPrototype(prototype)) throw unsupported("an instance of a subclass of Array");
    visitElements(walk, value, depth + 1);
  } else if (prototype === null || isObjectPrototype(prototype)) {
    if (prototype === null) walk.plain = false;
    visitMembers(walk, value, depth + 1);
  } else {
    const builtIn = builtInOf(value);
    if (builtIn === undefined) throw unsupported(`an instance of ${className(prototype)}`);
    walk.plain = false;
    visitBuiltIn(walk, value, builtIn, depth + 1);
  }
}

function visitMembers(walk: Walk, value: object, depth: number): void {
  refuseSymbols(value);
  for (const name of Object.getOwnPropertyNames(value)) {
    spend(walk, name.length + 4);
    visit(walk, dataOf(value, name).value, depth);
  }
}

function visitElements(walk: Walk, array: readonly unknown[], depth: number): void {
  refuseSymbols(array);
  const { length } = array;
  const names = length > MAX_NAMES ? Object.keys(array) : Object.getOwnPropertyNames(array);
  // Indices come first and in order, so the one in the last place tells whether all are there.
  const dense = length === 0 || names[length - 1] === `${length - 1}`;
  if (!dense) walk.plain = false;
  for (const [position, name] of names.entries()) {
    if (name === "length") continue;
    if (dense ? position >= length : !isIndex(name, length)) throw unsupported("an array with named members");
    spend(walk, 1);
    visit(walk, dataOf(array, name).value, depth);
  }
}

function isIndex(name: string, length: number): boolean {
  const index = Number(name);
  return index < length && `${index >>> 0}` === name;
}

function visitBuiltIn(walk: Walk, value: object, builtIn: BuiltIn, depth: number): void {
  switch (builtIn.kind) {
    case "date":
      refuseMembers(value);
      spend(walk, 24);
      break;
    case "map":
      refuseMembers(value);
      for (const [key, item] of value as ReadonlyMap<unknown, unknown>) {
        visit(walk, key, depth);
        visit(walk, item, depth);
      }
      break;
    case "set":
      refuseMembers(value);
      for (const item of value as ReadonlySet<unknown>) visit(walk, item, depth);
      break;
    case "bytes": {
      const bytes = surveyBytes(value);
      walk.shown.push(bytes);
      spend(walk, Math.ceil(bytes.byteLength / 3) * 4);
      break;
    }
    case "error":
      walk.openErrors.add(value);
      for (const member of errorMembers(value)) {
        spend(walk, member.name.length + 4);
        visit(walk, member.value, depth);
      }
      walk.openErrors.delete(value);
      break;
    default:
      unreachable(builtIn);
  }
}

/**
 * The bytes of a view or an `ArrayBuffer`, not copied.
 *
 * @throws NotKept if they are not its own, or something has been added to it.
 */
export function surveyBytes(value: object): Uint8Array<ArrayBuffer> {
  const bytes = bytesOf(value);
  if (bytes === undefined) throw unsupported("shared or resizable memory");
  refuseSymbols(value);
  const elements =
    ArrayBuffer.isView(value) && !(value instanceof DataView) ? (value as Uint8Array).length : 0;
  if (elements <= MAX_NAMES && Object.getOwnPropertyNames(value).length > elements) {
    throw unsupported("a built-in object with members of its own");
  }
  return bytes;
}

export interface ErrorMember {
  readonly name: string;
  readonly enumerable: boolean;
  readonly value: unknown;
}

/** All that an error holds itself, without the stack: message, cause, code and whatever else was set. */
export function errorMembers(error: object): ErrorMember[] {
  refuseSymbols(error);
  const members: ErrorMember[] = [];
  for (const name of Object.getOwnPropertyNames(error)) {
    if (name === "stack") continue;
    const { enumerable = false, value } = dataOf(error, name, true);
    members.push({ name, enumerable, value });
  }
  return members;
}

function dataOf(holder: object, name: string, hiddenToo = false): PropertyDescriptor {
  const own = Object.getOwnPropertyDescriptor(holder, name);
  if (own === undefined || !("value" in own)) throw unsupported("a getter or setter");
  if (own.enumerable !== true && !hiddenToo) throw unsupported("a hidden member");
  return own;
}

function refuseSymbols(holder: object): void {
  if (Object.getOwnPropertySymbols(holder).length > 0) throw unsupported("a member named by a symbol");
}

function refuseMembers(holder: object): void {
  refuseSymbols(holder);
  if (Object.getOwnPropertyNames(holder).length > 0)
    throw unsupported("a built-in object with members of its own");
}

function spend(walk: Walk, bytes: number): void {
  walk.bytesLeft -= bytes;
  if (walk.bytesLeft < 0) throw new NotKept("too-large", "is larger than allowed");
}

function unsupported(what: string): NotKept {
  return new NotKept("unsupported", `holds ${what}`);
}

function className(prototype: object): string {
  const made: unknown = Object.getOwnPropertyDescriptor(prototype, "constructor")?.value;
  return typeof made === "function" && made.name !== "" ? made.name : "a class";
}
