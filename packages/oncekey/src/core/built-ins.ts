/**
 * @module
 * The built-in classes whose instances the result codec can hold, and how to tell a real one from what only
 * looks like one.
 *
 * Invariant: a value is told by its prototype *and* by the internal slot that no imitation has. An instance
 * of a subclass is none of these: its class cannot be restored, so it is not data.
 */

const ERRORS = {
  Error,
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
  AggregateError,
} as const satisfies Record<string, new (...args: never[]) => Error>;

type ErrorName = keyof typeof ERRORS;
type SimpleErrorName = Exclude<ErrorName, "AggregateError">;

type View = new (buffer: ArrayBuffer) => ArrayBufferView;

/** Views of bytes by name. `Buffer` and `Float16Array` are not everywhere. */
const VIEWS: ReadonlyMap<string, View> = new Map(
  [
    ...[
      "Uint8Array",
      "Int8Array",
      "Uint8ClampedArray",
      "Int16Array",
      "Uint16Array",
      "Int32Array",
      "Uint32Array",
    ],
    ...["Float16Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array", "DataView"],
  ].flatMap((name): [string, View][] => {
    const view = (globalThis as Readonly<Record<string, unknown>>)[name];
    return typeof view === "function" ? [[name, view as View]] : [];
  }),
);

interface BufferClass {
  readonly prototype: Uint8Array;
  from(buffer: ArrayBuffer): Uint8Array;
}
const { Buffer: NodeBuffer } = globalThis as { readonly Buffer?: BufferClass };

export type BuiltIn =
  | { readonly kind: "date" }
  | { readonly kind: "map" }
  | { readonly kind: "set" }
  | { readonly kind: "bytes"; readonly name: string }
  | { readonly kind: "error"; readonly name: ErrorName };

/** What a prototype stands for. */
const BY_PROTOTYPE: ReadonlyMap<unknown, BuiltIn> = new Map<unknown, BuiltIn>([
  [Date.prototype, { kind: "date" }],
  [Map.prototype, { kind: "map" }],
  [Set.prototype, { kind: "set" }],
  [ArrayBuffer.prototype, { kind: "bytes", name: "ArrayBuffer" }],
  ...[...VIEWS].map(([name, view]): [unknown, BuiltIn] => [view.prototype, { kind: "bytes", name }]),
  ...Object.entries(ERRORS).map(([name, error]): [unknown, BuiltIn] => [
    error.prototype,
    { kind: "error", name: name as ErrorName },
  ]),
  ...(NodeBuffer === undefined ? [] : [[NodeBuffer.prototype, { kind: "bytes", name: "Buffer" }] as const]),
]);

/** Which built-in `value` really is; `undefined` if it is none of them. */
export function builtInOf(value: object): BuiltIn | undefined {
  const builtIn = BY_PROTOTYPE.get(Object.getPrototypeOf(value));
  return builtIn !== undefined && hasSlot(value, builtIn) ? builtIn : undefined;
}

/** Methods and getters that look at the internal slot throw on an object without it. */
function hasSlot(value: object, builtIn: BuiltIn): boolean {
  try {
    switch (builtIn.kind) {
      case "date":
        Date.prototype.getTime.call(value);
        return true;
      case "map":
        Map.prototype.has.call(value, undefined);
        return true;
      case "set":
        Set.prototype.has.call(value, undefined);
        return true;
      case "bytes":
        return builtIn.name === "ArrayBuffer" ? read(value, "byteLength") >= 0 : ArrayBuffer.isView(value);
      case "error":
        return Object.prototype.toString.call(value) === "[object Error]";
    }
  } catch {
    return false;
  }
}

/** Reads a getter of the class, whatever the object itself has under that name. */
function read<Name extends "buffer" | "byteOffset" | "byteLength">(
  value: object,
  name: Name,
): ArrayBufferView<ArrayBuffer>[Name] {
  return Reflect.get(Object.getPrototypeOf(value), name, value);
}

/**
 * The bytes that a view or an `ArrayBuffer` shows, without copying them; `undefined` if others can change
 * them (shared memory) or their number can change.
 *
 * @throws TypeError if the memory has been given away (transferred to a worker).
 */
export function bytesOf(value: object): Uint8Array<ArrayBuffer> | undefined {
  const whole = !ArrayBuffer.isView(value);
  const buffer = whole ? (value as ArrayBuffer) : read(value, "buffer");
  if (Object.getPrototypeOf(buffer) !== ArrayBuffer.prototype) return undefined;
  if ((buffer as { readonly resizable?: boolean }).resizable === true) return undefined;
  return new Uint8Array(buffer, whole ? 0 : read(value, "byteOffset"), read(value, "byteLength"));
}

/**
 * Makes a view of the named class over `buffer`. A `Buffer` becomes a `Uint8Array` where there is no `Buffer`.
 *
 * @throws Error if this platform has no such class, or it does not fit that many bytes.
 */
export function bytesFrom(name: string, buffer: ArrayBuffer): object {
  if (name === "ArrayBuffer") return buffer;
  if (name === "Buffer") return NodeBuffer?.from(buffer) ?? new Uint8Array(buffer);
  const view = VIEWS.get(name);
  if (view === undefined) throw new TypeError("No such class of bytes");
  return new view(buffer);
}

/** An error of the named class, without any member of its own but the stack. */
export function errorFrom(name: string): Error | undefined {
  if (!Object.hasOwn(ERRORS, name)) return undefined;
  const error =
    name === "AggregateError" ? new AggregateError([], "none") : new ERRORS[name as SimpleErrorName]();
  for (const own of Object.getOwnPropertyNames(error)) {
    if (own !== "stack") Reflect.deleteProperty(error, own);
  }
  return error;
}

/**
 * Whether some byte is shown twice. Two views of one buffer see each other's writes, which copies would not;
 * views of separate parts (small Buffers share a pool) have nothing to do with each other.
 */
export function sharesMemory(shown: readonly Uint8Array[]): boolean {
  const ends = new Map<ArrayBufferLike, number>();
  for (const { buffer, byteOffset, byteLength } of shown.toSorted((a, b) => a.byteOffset - b.byteOffset)) {
    if (byteLength === 0) continue;
    if (byteOffset < (ends.get(buffer) ?? 0)) return true;
    ends.set(buffer, byteOffset + byteLength);
  }
  return false;
}

/**
 * Also that of another realm (a `vm` context, a test runner's): the only prototype that ends a chain and has
 * this member.
 */
export function isObjectPrototype(prototype: object): boolean {
  if (prototype === Object.prototype) return true;
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, "propertyIsEnumerable");
}

/** Also that of another realm: it is an array itself, which the prototype of a subclass is not. */
export function isArrayPrototype(prototype: unknown): boolean {
  if (prototype === Array.prototype) return true;
  return Array.isArray(prototype) && Object.hasOwn(prototype, "copyWithin");
}
