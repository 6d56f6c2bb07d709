import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type JsonPointer, parsePointer, valueAt, without } from "./json-pointer.js";

const at = (document: unknown, pointer: string) => valueAt(document, parsePointer(pointer) as JsonPointer);

/** The example document of RFC 6901 §5. */
const example = {
  foo: ["bar", "baz"],
  "": 0,
  "a/b": 1,
  "c%d": 2,
  "e^f": 3,
  "g|h": 4,
  "i\\j": 5,
  'k"l': 6,
  " ": 7,
  "m~n": 8,
};

describe("valueAt", () => {
  it.each<[string, unknown]>([
    ["", example],
    ["/foo", ["bar", "baz"]],
    ["/foo/0", "bar"],
    ["/", 0],
    ["/a~1b", 1],
    ["/c%d", 2],
    ["/e^f", 3],
    ["/g|h", 4],
    ["/i\\j", 5],
    ['/k"l', 6],
    ["/ ", 7],
    ["/m~0n", 8],
  ])("finds %j of the example in RFC 6901", (pointer, value) => {
    expect(at(example, pointer)).toEqual(value);
  });

  it.each([
    "/foo/2",
    "/foo/-",
    "/foo/00",
    "/foo/length",
    "/foo/0/length",
    "/constructor",
    "/__proto__",
    "/x/y",
  ])("finds nothing at %j", (pointer) => {
    expect(at(example, pointer)).toBeUndefined();
  });

  it("finds what the sender put under __proto__, and undoes ~01 once", () => {
    expect(at(JSON.parse('{"__proto__":{"a":1}}'), "/__proto__/a")).toBe(1);
    expect(at({ "~1": "tilde", "/": "slash" }, "/~01")).toBe("tilde");
  });

  it.each(["foo", "a/b", "/a~", "/a~2"])("does not take %j for a pointer", (pointer) => {
    expect(parsePointer(pointer)).toBeUndefined();
  });
});

describe("without", () => {
  const pointers = (...texts: string[]) => texts.map((text) => parsePointer(text) as JsonPointer);

  it("leaves out what is named and keeps the rest", () => {
    const document = { a: { b: 1, c: 2 }, d: [1, { e: 1, f: 2 }] };
    expect(without(document, pointers("/a/b", "/d/1/e"))).toEqual({ a: { c: 2 }, d: [1, { f: 2 }] });
    expect(without(document, pointers("/d"))).toEqual({ a: { b: 1, c: 2 } });
    expect(without(document, pointers("/d/0", "/d/1/f"))).toEqual({
      a: { b: 1, c: 2 },
      d: [undefined, { e: 1 }],
    });
    expect(without(document, pointers("/nothing", "/a/b/c", "/d/7"))).toEqual(document);
    expect(without(document, pointers(""))).toBeUndefined();
  });

  it("never changes the document", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom("a", "b", "0"), fc.jsonValue()), (document) => {
        const before = JSON.stringify(document);
        without(document, pointers("/a", "/b/0", "/0/a/b"));
        expect(JSON.stringify(document)).toBe(before);
      }),
    );
  });

  it("keeps a member called __proto__ a member", () => {
    const rest = without(JSON.parse('{"__proto__":{"x":1,"y":2},"a":1}'), pointers("/a", "/__proto__/x"));
    expect(JSON.stringify(rest)).toBe('{"__proto__":{"y":2}}');
  });
});
