import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalLiteral, canonicalText } from "./canonical.js";

/** RFC 8785 as one would write it down: recursive, sorted by `sort`, everything quoted by `JSON.stringify`. */
function reference(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(reference).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${reference(member)}`).join(",")}}`;
}

const nested = (depth: number, around: (inner: unknown) => unknown, core: unknown = 1) => {
  let value = core;
  for (let level = 0; level < depth; level++) value = around(value);
  return value;
};

describe("canonicalText of JSON data", () => {
  it("is the RFC 8785 text of any JSON value", () => {
    const anyJson = fc.jsonValue({ maxDepth: 6, stringUnit: "binary" });
    fc.assert(
      fc.property(anyJson, (value) => {
        expect(canonicalText(value)).toBe(reference(value));
      }),
    );
  });

  it("does not depend on the order of members", () => {
    const members = fc.uniqueArray(fc.tuple(fc.string(), fc.jsonValue()), { selector: ([name]) => name });
    fc.assert(
      fc.property(members, (entries) => {
        const forth = Object.fromEntries(entries);
        const back = Object.fromEntries([...entries].reverse());
        expect(canonicalText(forth)).toBe(canonicalText(back));
      }),
    );
  });

  it("sorts and spells as the example of RFC 8785 §3.2.3 and §3.2.2", () => {
    const sorted = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7 };
    expect(canonicalText(sorted)).toBe(
      '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}',
    );
    expect(
      canonicalText([Number("333333333.33333329"), 1e30, 4.5, 2e-3, 0.000000000000000000000000001]),
    ).toBe("[333333333.3333333,1e+30,4.5,0.002,1e-27]");
    expect(canonicalText('\u20ac$\u000f\nA\'B"\\\\"/')).toBe('"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"');
  });

  it("sorts more members than the insertion sort takes", () => {
    const many = Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [`n${(index * 37) % 100}`, index]),
    );
    expect(canonicalText(many)).toBe(reference(many));
  });

  it("has a text for -0, lone surrogates and __proto__", () => {
    expect(canonicalText(-0)).toBe("0");
    expect(canonicalText("\ud800")).toBe('"\\ud800"');
    expect(canonicalText({ "\udead": 1 })).toBe('{"\\udead":1}');
    expect(canonicalText(JSON.parse('{"__proto__":{"a":1},"b":2}'))).toBe('{"__proto__":{"a":1},"b":2}');
  });

  it.each([127, 128, 129, 300, 100_000])("writes %i levels exactly", (depth) => {
    expect(canonicalText(nested(depth, (inner) => [inner]))).toBe(
      `${"[".repeat(depth)}1${"]".repeat(depth)}`,
    );
    const members = nested(depth, (inner) => ({ b: [], a: inner, c: undefined }));
    expect(canonicalText(members)).toBe(`${'{"a":'.repeat(depth)}1${',"b":[]}'.repeat(depth)}`);
  });

  it("is the same below the recursion limit and beyond it", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const deep = canonicalText(nested(140, (inner) => [inner], value));
        expect(deep).toBe(`${"[".repeat(140)}${reference(value)}${"]".repeat(140)}`);
      }),
    );
  });

  it("stays right when strangers fill the list of known names", () => {
    for (let index = 0; index < 5_000; index++) {
      expect(canonicalText({ [`stranger-${index}`]: index })).toBe(`{"stranger-${index}":${index}}`);
    }
  });
});

describe("canonicalText of other data", () => {
  const apart: readonly unknown[] = [
    ...[
      undefined,
      null,
      "#undefined",
      "undefined",
      Number.NaN,
      "NaN",
      null,
      Number.POSITIVE_INFINITY,
      0,
      "0",
      0n,
    ],
    ...[
      [],
      [undefined],
      [null],
      {},
      "",
      false,
      "false",
      new Date(0),
      "1970-01-01T00:00:00.000Z",
      new Date(1),
    ],
    ...[
      new Date(Number.NaN),
      new Map(),
      new Map([[1, 2]]),
      new Map([["1", 2]]),
      new Set(),
      new Set([1]),
      [1],
    ],
    ...[
      new Uint8Array(0),
      new Uint8Array([1]),
      new Uint8Array([2]),
      new Uint16Array([1]),
      new Int8Array([1]),
    ],
    ...[{ a: 1 }, { a: "1" }, { a: 1n }, [["a", 1]], new Map([["a", 1]]), { a: { b: 1 } }, { "a.b": 1 }],
  ];

  it("keeps different data apart", () => {
    const texts = new Map<string, unknown>();
    for (const value of new Set(apart)) {
      const text = canonicalText(value);
      expect(texts.has(text), text).toBe(false);
      texts.set(text, value);
    }
  });

  it("does not see the order of entries, elements and members, at any level", () => {
    const one = new Map<unknown, unknown>([
      [{ a: 1, b: 2 }, new Set([1, "1", new Set([2, 3])])],
      ["x", [1, 2]],
    ]);
    const other = new Map<unknown, unknown>([
      ["x", [1, 2]],
      [{ b: 2, a: 1 }, new Set([new Set([3, 2]), "1", 1])],
    ]);
    expect(canonicalText(one)).toBe(canonicalText(other));
  });

  it("takes a member that is undefined for absent", () => {
    expect(canonicalText({ a: undefined, b: 1 })).toBe(canonicalText({ b: 1 }));
  });

  it("sees the data of an instance, not its class, and honours toJSON", () => {
    class Order {
      readonly id = 1;
    }
    class RenamedOrder extends Order {}
    expect(canonicalText(new RenamedOrder())).toBe(canonicalText({ id: 1 }));
    expect(canonicalText(new URL("https://example.com/a"))).toBe('"https://example.com/a"');
    expect(canonicalText(Object.assign(Object.create(null), { id: 1 }))).toBe('{"id":1}');
  });

  it("takes bytes by their content, however they are held", () => {
    const bytes = Uint8Array.from([0, 255, 1, 2]);
    const text = canonicalText(bytes.subarray(1, 3));
    expect(canonicalText(Buffer.from([255, 1]))).toBe(text);
    expect(canonicalText(Uint8Array.from([255, 1]).buffer)).toBe(text);
    expect(canonicalText(new DataView(bytes.buffer, 1, 2))).toBe(text);
  });

  it("knows the built-in objects of another realm", () => {
    const value = runInNewContext(
      "({ when: new Date(5), tags: new Set([2, 1]), list: [1], map: new Map([[1, 2]]) })",
    );
    expect(canonicalText(value)).toBe(
      canonicalText({ when: new Date(5), tags: new Set([1, 2]), list: [1], map: new Map([[1, 2]]) }),
    );
  });

  it("writes what stands for a text as that text", () => {
    expect(canonicalText([canonicalLiteral("12e0")])).toBe("[12e0]");
  });

  it("holds a shared object twice without taking it for a cycle", () => {
    const shared = { a: 1 };
    const twice = nested(200, (inner) => [inner], [shared, shared]);
    expect(canonicalText(twice)).toContain('[{"a":1},{"a":1}]');
  });

  const cyclic: { self?: unknown } = {};
  cyclic.self = [cyclic];
  const cyclicMap = new Map<string, unknown>();
  cyclicMap.set("self", cyclicMap);
  class Hidden {
    #amount = 1;
    amount = () => this.#amount;
  }
  it.each<[string, unknown]>([
    ["a function", { callback: () => 1 }],
    ["a symbol", [Symbol("secret-text")]],
    ["a cycle", cyclic],
    ["a cycle through a map", cyclicMap],
    ["an error", new Error("secret-text")],
    ["a promise", Promise.resolve(1)],
    ["a pattern", /secret-text/],
    ["form data", new FormData()],
    ["search parameters", new URLSearchParams("secret-text=1")],
    ["methods kept as members", new Hidden()],
  ])("refuses %s by code, without showing the input", (_what, value) => {
    let thrown: unknown;
    try {
      canonicalText(value);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ code: "INPUT_UNSUPPORTED" });
    expect(String(thrown)).not.toContain("secret-text");
  });
});
