/**
 * @module
 * A comparison that sees what matchers overlook.
 */

/**
 * The first difference between two values, or `undefined`. Stricter than any matcher of the test runner: it
 * compares classes, own members with their descriptors and order, holes, `-0`, bytes, and which objects are
 * the same one (each object of `a` has exactly one partner in `b`).
 */
export function difference(
  a: unknown,
  b: unknown,
  path = "$",
  pairs = new Map<object, object>(),
): string | undefined {
  if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) {
    return Object.is(a, b) ? undefined : `${path}: ${String(a)} became ${String(b)}`;
  }
  if (pairs.has(a) || pairs.has(b)) {
    return pairs.get(a) === b && pairs.get(b) === a ? undefined : `${path}: identity`;
  }
  pairs.set(a, b).set(b, a);
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return `${path}: prototype`;
  const tag = Object.prototype.toString.call(a);
  if (tag !== Object.prototype.toString.call(b)) return `${path}: ${tag}`;
  return slotDifference(a, b, path, pairs) ?? memberDifference(a, b, path, pairs);
}

function slotDifference(a: object, b: object, path: string, pairs: Map<object, object>): string | undefined {
  if (a instanceof Date) return difference(a.getTime(), (b as Date).getTime(), `${path}.time`, pairs);
  if (a instanceof Map || a instanceof Set) {
    return difference(
      [...a.entries()].flat(),
      [...(b as typeof a).entries()].flat(),
      `${path}.entries`,
      pairs,
    );
  }
  if (!ArrayBuffer.isView(a) && !(a instanceof ArrayBuffer)) return undefined;
  return difference(hex(a), hex(b as typeof a), `${path}.bytes`, pairs);
}

function hex(bytes: ArrayBufferView | ArrayBufferLike): string {
  return ArrayBuffer.isView(bytes)
    ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")
    : Buffer.from(bytes).toString("hex");
}

function memberDifference(
  a: object,
  b: object,
  path: string,
  pairs: Map<object, object>,
): string | undefined {
  const names = (value: object) =>
    Reflect.ownKeys(value).filter((name) => name !== "stack" || !(value instanceof Error));
  const [ours, theirs] = [names(a), names(b)];
  if (ours.length !== theirs.length || ours.some((name, index) => name !== theirs[index]))
    return `${path}: names`;
  for (const name of ours) {
    const [mine, other] = [
      Object.getOwnPropertyDescriptor(a, name),
      Object.getOwnPropertyDescriptor(b, name),
    ];
    if (mine?.enumerable !== other?.enumerable) return `${path}.${String(name)}: enumerable`;
    const found = difference(mine?.value, other?.value, `${path}.${String(name)}`, pairs);
    if (found !== undefined) return found;
  }
  return undefined;
}
