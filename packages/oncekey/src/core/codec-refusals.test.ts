import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyResult } from "../../test/support/any-result.js";
import { difference } from "../../test/support/strict-difference.js";
import { decodeResult, encodeResult } from "./codec.js";

const MANY = 1_000_000;

describe("encodeResult does not keep", () => {
  class Money {
    amount = 1;
  }
  class Money2 extends Map {}
  const named = Object.assign([1], { index: 0 });
  const detached = new ArrayBuffer(8);
  structuredClone(detached, { transfer: [detached] });
  const buffer = new ArrayBuffer(8);
  const hiddenElement = Object.defineProperty([1, 2], 1, { value: 2, enumerable: false });

  it.each<[string, unknown, string]>([
    ["a function", () => 1, "a function"],
    ["a symbol", Symbol("x"), "a symbol"],
    ["a class instance", new Money(), "an instance of Money"],
    ["an instance of a class without a name", new (class {})(), "an instance of a class"],
    ["a subclass of Map", new Money2(), "an instance of Money2"],
    ["a subclass of Array", new (class List extends Array {})(), "a subclass of Array"],
    ["a subclass of Error", new (class Failure extends Error {})("x"), "an instance of Failure"],
    ["a promise", Promise.resolve(1), "an instance of Promise"],
    ["a stream", new ReadableStream(), "an instance of ReadableStream"],
    ["a WeakMap", new WeakMap(), "an instance of WeakMap"],
    ["a pattern", /x/g, "an instance of RegExp"],
    ["a boxed text", Object("x"), "an instance of String"],
    ["a URL", new URL("https://x.test"), "an instance of URL"],
    ["a Response", new Response("x"), "an instance of Response"],
    ["a generator", (function* () {})(), "an instance of a class"],
    ["a Proxy", new Proxy({ a: 1 }, {}), "a Proxy"],
    ["a Proxy for an array", new Proxy([1], {}), "a Proxy"],
    ["a Proxy for bytes", new Proxy(new Uint8Array(1), {}), "a Proxy"],
    ["a member named by a symbol", { [Symbol("x")]: 1 }, "a member named by a symbol"],
    [
      "a getter",
      {
        get a() {
          return 1;
        },
      },
      "a getter or setter",
    ],
    ["a setter", { set a(_: number) {} }, "a getter or setter"],
    [
      "a getter as an element",
      Object.defineProperty([1], 0, { get: () => 1, enumerable: true }),
      "a getter or setter",
    ],
    ["a hidden member", Object.defineProperty({}, "a", { value: 1 }), "a hidden member"],
    ["a hidden element", hiddenElement, "a hidden member"],
    ["an array with named members", named, "an array with named members"],
    [
      "a sparse array with named members",
      Object.assign(new Array(3), { "01": 1 }),
      "an array with named members",
    ],
    [
      "a long array with named members",
      Object.assign(new Array(9_000).fill(0), { a: 1 }),
      "an array with named",
    ],
    ["a template string's texts", ((texts: TemplateStringsArray) => texts)`x`, "an array with named members"],
    ["a match of a pattern", "x".match(/x/), "an array with named members"],
    ["an array with a symbol", Object.assign([1], { [Symbol.iterator]: 1 }), "a member named by a symbol"],
    ["a Date with members", Object.assign(new Date(), { a: 1 }), "members of its own"],
    ["a Map with members", Object.assign(new Map(), { a: 1 }), "members of its own"],
    ["a Set with a symbol", Object.assign(new Set(), { [Symbol("x")]: 1 }), "a member named by a symbol"],
    ["bytes with members", Object.assign(new Uint8Array(2), { a: 1 }), "members of its own"],
    [
      "a view with a buffer of its own",
      Object.defineProperty(new DataView(buffer), "buffer", { value: 1 }),
      "members of",
    ],
    ["an imitation of a Date", Object.create(Date.prototype), "an instance of Date"],
    ["an imitation of a Map", Object.create(Map.prototype), "an instance of Map"],
    ["an imitation of an Error", Object.create(Error.prototype), "an instance of Error"],
    ["an imitation of bytes", Object.create(Uint8Array.prototype), "an instance of Uint8Array"],
    ["an imitation of an ArrayBuffer", Object.create(ArrayBuffer.prototype), "an instance of ArrayBuffer"],
    ["shared memory", new SharedArrayBuffer(1), "an instance of SharedArrayBuffer"],
    ["a view of shared memory", new Uint8Array(new SharedArrayBuffer(1)), "shared or resizable memory"],
    ["memory that was given away", detached, "cannot be read"],
    ["views of the same memory", [new Uint8Array(buffer), new Int8Array(buffer, 4)], "share their memory"],
    ["a buffer and its view", { buffer, view: new DataView(buffer) }, "share their memory"],
    ["a module", globalThis, "holds"],
  ])("%s", (_, value, detail) => {
    for (const held of [value, { deep: [value] }, new Map([[1, value]]), new Error("x", { cause: value })]) {
      const result = encodeResult(held, MANY);
      expect(result).toMatchObject({ kind: "not-kept", reason: "unsupported" });
      expect(result.kind === "not-kept" && result.detail).toContain(detail);
    }
  });

  it("what it would have to run something of the caller's to read", () => {
    let ran = 0;
    const trap = () => {
      ran++;
      return undefined;
    };
    const handler = {
      get: trap,
      has: trap as never,
      ownKeys: trap as never,
      getOwnPropertyDescriptor: trap as never,
    };
    const thenable = "then";
    const spies: unknown[] = [
      Object.defineProperty({}, "a", { get: trap, enumerable: true }),
      new Proxy({}, { ...handler, getPrototypeOf: trap as never }),
      { toJSON: trap },
      { [thenable]: trap },
      Object.defineProperty(new Map(), Symbol.iterator, { value: trap }),
      Object.defineProperty({}, Symbol.toStringTag, { get: trap }),
    ];
    for (const spy of spies) expect(encodeResult([spy], MANY).kind).toBe("not-kept");
    expect(ran).toBe(0);
  });

  it("a value that is nested very deeply, and does not fall over it", () => {
    const nested = (depth: number, wrap: (inner: unknown) => unknown): unknown => {
      let value: unknown = "core";
      for (let level = 0; level < depth; level++) value = wrap(value);
      return value;
    };
    const tooDeep = { kind: "not-kept", reason: "unsupported", detail: "holds more than 500 levels" };
    expect(
      encodeResult(
        nested(100_000, (inner) => [{ inner }]),
        MANY,
      ),
    ).toEqual(tooDeep);
    for (const wrap of [
      (inner: unknown) => [inner],
      (inner: unknown) => ({ inner }),
      (inner: unknown) => new Map([[inner, 1]]),
      (inner: unknown) => new Set([inner, -0]),
      (cause: unknown) => new Error("x", { cause }),
    ]) {
      expect(encodeResult(nested(5_000, wrap), MANY)).toEqual(tooDeep);
      const deep = nested(400, wrap);
      const encoded = encodeResult(deep, MANY);
      const decoded = encoded.kind === "encoded" ? decodeResult(encoded.outcome) : encoded;
      expect(decoded.kind === "value" && difference(deep, decoded.value)).toBeUndefined();
    }
  });

  it("more than maxBytes, to the byte", () => {
    fc.assert(
      fc.property(anyResult, (value) => {
        const encoded = encodeResult(value, MANY);
        if (encoded.kind === "not-kept" || encoded.outcome.body === undefined) return;
        const { byteLength } = encoded.outcome.body;
        expect(encodeResult(value, byteLength - 1)).toMatchObject({ kind: "not-kept", reason: "too-large" });
      }),
      { numRuns: 300 },
    );
    const receipt = { id: "é", amounts: [1, 2] };
    const { length } = Buffer.from(JSON.stringify(receipt));
    expect(encodeResult(receipt, length).kind).toBe("encoded");
    expect(encodeResult(receipt, length - 1).kind).toBe("not-kept");
  });

  it("huge values, without writing them first", () => {
    const huge = { texts: Array.from({ length: 100 }, () => "x".repeat(10_000_000)) };
    expect(encodeResult(huge, MANY)).toMatchObject({ kind: "not-kept", reason: "too-large" });
    expect(encodeResult(new Uint8Array(MANY + 1), MANY)).toMatchObject({ reason: "too-large" });
    expect(encodeResult(1n << 40_000_000n, MANY)).toMatchObject({ reason: "too-large" });
  });
});
