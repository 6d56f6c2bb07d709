/**
 * @module
 * The few assertions that the contract needs, so that it is tied to no test runner.
 *
 * Invariant: a failure is a plain `Error` whose message shows what was expected and what came.
 */
import { type ErrorCode, isOncekeyError } from "../../core/errors.js";

/** Fails with `what` unless `condition` holds. */
export function ok(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(what);
}

/** Fails unless both are the same data, bytes included. */
export function equal(actual: unknown, expected: unknown, what: string): void {
  if (!same(actual, expected)) throw new Error(`${what}: expected ${show(expected)}, got ${show(actual)}`);
}

/** Fails unless `actual` has every member of `expected`. It may have more. */
export function has(actual: unknown, expected: Readonly<Record<string, unknown>>, what: string): void {
  const members = (actual ?? {}) as Readonly<Record<string, unknown>>;
  const wrong = Object.keys(expected).filter((name) => !same(members[name], expected[name]));
  if (wrong.length > 0) {
    throw new Error(`${what}: expected ${show(expected)}, got ${show(actual)} (${wrong.join(", ")} differ)`);
  }
}

/** Fails unless `actual` is of that `kind`; returns it as such. */
export function kind<T extends { readonly kind: string }, K extends T["kind"]>(
  actual: T,
  expected: K,
  what: string,
): Extract<T, { readonly kind: K }> {
  if (actual.kind !== expected) throw new Error(`${what}: expected "${expected}", got ${show(actual)}`);
  return actual as Extract<T, { readonly kind: K }>;
}

/** Fails unless the call is refused with the code, thrown or rejected. */
export async function refuses(call: () => unknown, code: ErrorCode, what: string): Promise<void> {
  let answer: unknown;
  try {
    answer = await call();
  } catch (error) {
    if (isOncekeyError(error, code)) return;
    throw new Error(`${what}: expected ${code}, got ${show(error)}`, { cause: error });
  }
  throw new Error(`${what}: expected ${code}, got the answer ${show(answer)}`);
}

function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a instanceof Uint8Array || b instanceof Uint8Array) return sameBytes(a, b);
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => same(Reflect.get(a, name), Reflect.get(b, name)));
}

function sameBytes(a: object, b: object): boolean {
  if (!(a instanceof Uint8Array && b instanceof Uint8Array)) return false;
  return a.byteLength === b.byteLength && a.every((byte, index) => byte === b[index]);
}

const MAX_SHOWN = 600;

function show(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  const text = JSON.stringify(value, (_, part: unknown) =>
    part instanceof Uint8Array ? `<${part.byteLength} bytes: ${[...part.subarray(0, 16)].join(" ")}>` : part,
  );
  return text === undefined ? String(value) : text.slice(0, MAX_SHOWN);
}
