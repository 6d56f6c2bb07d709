/**
 * @module
 * Writes surveyed data as text and reads it back, without loss: devalue, extended by errors, bytes in their
 * own class, and members named `__proto__`.
 *
 * Invariant: only data that passed `survey` is written, and reading runs nothing that a text could name: no
 * patterns, no URLs, no classes but those of `built-ins.ts`; no member is ever assigned to one inherited.
 */
import { parse, stringify } from "devalue";
import { builtInOf, bytesFrom, bytesOf, errorFrom } from "./built-ins.js";
import { errorMembers } from "./survey.js";

/** @param value has passed `survey`. */
export function writeLossless(value: unknown): string {
  return stringify(value, { Error: reduceError, Bytes: reduceBytes }, { operations: { shapeOf, get } });
}

/** @throws Error if `text` was not written by `writeLossless`. */
export function readLossless(text: string): unknown {
  const operations = {
    set,
    fromRegExpInfo: refuse,
    fromStringValue: refuse,
    fromViewInfo: refuse,
    box: refuse,
  };
  return parse(text, { Error: reviveError, Bytes: reviveBytes }, { operations });
}

/** `[class, name, enumerable, value, name, enumerable, value, …]` */
function reduceError(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  const builtIn = builtInOf(value);
  if (builtIn?.kind !== "error") return undefined;
  return [
    builtIn.name,
    ...errorMembers(value).flatMap((member) => [member.name, member.enumerable, member.value]),
  ];
}

function reviveError(written: unknown): Error {
  if (!Array.isArray(written)) return refuse();
  const [name, ...members] = written as readonly unknown[];
  const error = typeof name === "string" ? errorFrom(name) : undefined;
  if (error === undefined || members.length % 3 !== 0) return refuse();
  for (let index = 0; index < members.length; index += 3) {
    const member = members[index];
    if (typeof member !== "string") return refuse();
    define(error, member, members[index + 2], members[index + 1] === true);
  }
  // The stack of whoever reads would point at this file; one line is what is known.
  define(error, "stack", headline(error), false);
  return error;
}

function headline({ name, message }: { readonly name: unknown; readonly message: unknown }): string {
  return [name, message].filter((part) => typeof part === "string" && part !== "").join(": ");
}

/** `[class, bytes]` */
function reduceBytes(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  const builtIn = builtInOf(value);
  // An `ArrayBuffer` is what devalue can write itself; through a copy, which this would reduce again.
  if (builtIn?.kind !== "bytes" || builtIn.name === "ArrayBuffer") return undefined;
  return [builtIn.name, bytesOf(value)?.slice().buffer];
}

function reviveBytes(written: unknown): object {
  if (!Array.isArray(written)) return refuse();
  const [name, buffer] = written as readonly unknown[];
  if (typeof name !== "string" || !(buffer instanceof ArrayBuffer)) return refuse();
  return bytesFrom(name, buffer);
}

/** devalue writes no member named `__proto__`. With a NUL in front it is a name like any other. */
function shapeOf(value: object): { readonly kind: "plain" | "null-proto"; readonly keys: string[] } {
  const kind = Object.getPrototypeOf(value) === null ? "null-proto" : "plain";
  return { kind, keys: Object.keys(value).map(escapeName) };
}

function get(holder: object, name: string | number): unknown {
  return Reflect.get(holder, typeof name === "string" ? plainName(name) : name);
}

function set(holder: object, name: string | number, value: unknown): void {
  const plain = typeof name === "string" ? plainName(name) : name;
  // What is inherited may have a setter, or be frozen.
  if (plain in holder) define(holder, plain, value, true);
  else Reflect.set(holder, plain, value);
}

function escapeName(name: string): string {
  return name === "__proto__" || name.startsWith("\0") ? `\0${name}` : name;
}

function plainName(name: string): string {
  return name.startsWith("\0") ? name.slice(1) : name;
}

function define(holder: object, name: string | number, value: unknown, enumerable: boolean): void {
  Object.defineProperty(holder, name, { value, enumerable, writable: true, configurable: true });
}

function refuse(): never {
  throw new TypeError("Not what was written");
}
