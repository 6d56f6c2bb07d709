import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  downstreamKeyOf,
  GLOBAL_SCOPE,
  identify,
  isUnusable,
  MISSING_SCOPE,
  partsOf,
  type ScopeValue,
  scopeId,
  scopeOf,
  scopeValueOf,
} from "./key.js";

/** Texts that concatenate, frame and encode badly: separators, digits, halves of surrogate pairs. */
const anyText = fc.oneof(
  fc.string({ unit: "binary", minLength: 1, maxLength: 6 }),
  fc
    .array(
      fc.constantFrom("a", ":", "|", "#", "1", "2", "e", '"', "\\", "\0", "\ud800", "\udc00", "\ufffd"),
      {
        minLength: 1,
        maxLength: 6,
      },
    )
    .map((characters) => characters.join("")),
);
const anyParts = fc.array(anyText, { minLength: 1, maxLength: 3 });
const anyScope: fc.Arbitrary<ScopeValue> = fc.oneof(
  fc.constantFrom(GLOBAL_SCOPE, MISSING_SCOPE),
  anyParts.map((parts): ScopeValue => ({ kind: "of", parts })),
);
const anyIdentity = fc.tuple(fc.oneof(fc.constant(""), anyText), anyScope, anyText, anyParts);

const keyOf = (identity: Parameters<typeof identify>) => identify(...identity).key;

describe("the identity of an operation", () => {
  it("is injective: namespace, scope, operation and key never run into each other", () => {
    fc.assert(
      fc.property(anyIdentity, anyIdentity, (one, other) => {
        const same = JSON.stringify(one) === JSON.stringify(other);
        expect(keyOf(one) === keyOf(other)).toBe(same);
      }),
      { numRuns: 3_000 },
    );
  });

  it("keeps its parts apart however the same characters are cut", () => {
    const cuts = fc.tuple(anyText, anyText, anyText).filter(([, moved]) => moved !== "");
    fc.assert(
      fc.property(cuts, ([before, moved, after]) => {
        const scope = (part: string): ScopeValue => ({ kind: "of", parts: [part] });
        const identities: Parameters<typeof identify>[] = [
          ["", GLOBAL_SCOPE, "op", [before + moved, after]],
          ["", GLOBAL_SCOPE, "op", [before, moved + after]],
          ["", GLOBAL_SCOPE, "op", [before, moved, after]],
          ["", GLOBAL_SCOPE, "op", [before + moved + after]],
          ["", GLOBAL_SCOPE, before + moved, [after]],
          ["", GLOBAL_SCOPE, before, [moved + after]],
          ["", scope(before + moved), after, ["k"]],
          ["", scope(before), moved + after, ["k"]],
          [before + moved, scope(after), "op", ["k"]],
          [before, scope(moved + after), "op", ["k"]],
        ];
        expect(new Set(identities.map(keyOf)).size).toBe(identities.length);
      }),
    );
  });

  it("tells a user whose id is global, or missing, from nobody's scope", () => {
    const scopes = [GLOBAL_SCOPE, scopeOf("global"), MISSING_SCOPE, scopeOf("missing"), scopeOf("of")];
    expect(new Set(scopes.map((scope) => keyOf(["", scope, "op", ["k"]]))).size).toBe(5);
    expect(new Set(scopes.map((scope) => scopeId("", scope))).size).toBe(5);
  });

  it("tells halves of surrogate pairs apart, which UTF-8 writes alike", () => {
    const texts = ["\ud800", "\udfff", "\ufffd", '"\\ud800"', "e8:x"];
    expect(new Set(texts.map((text) => keyOf(["", GLOBAL_SCOPE, "op", [text]]))).size).toBe(texts.length);
  });

  it("is frozen: version 1 of these identities has these digests for ever", () => {
    const scope = scopeOf(["tenant", 7]);
    expect(identify("shop", scope, "POST /orders/:", ["order", "1"])).toEqual({
      key: "5vlQYvh90qRvsNkP8Bcnb5GhNiH6-nLr6jabgl8tPiY",
      scopeId: "QoiI3ZFh2gBbUkyl_wsgTdXQtmYMB62U68MHmyUUnrY",
    });
    expect(keyOf(["", GLOBAL_SCOPE, "charge", ["\ud800"]])).toBe(
      "T1GXqEjq9-lc3TZ67-CXOSBpTTbEUCbKQ7yTK3lLe_0",
    );
  });

  it("has one scope digest for all its operations and keys, per namespace", () => {
    const [a, b] = ["pay", "ship"].map((operation) => identify("n", scopeOf("x"), operation, [operation]));
    expect(a?.scopeId).toBe(b?.scopeId);
    expect(a?.scopeId).toBe(scopeId("n", scopeOf("x")));
    expect(scopeId("m", scopeOf("x"))).not.toBe(a?.scopeId);
  });

  it("gives other services keys that depend on the identity and the name alone", () => {
    const key = keyOf(["", GLOBAL_SCOPE, "op", ["k"]]);
    const names = ["a", "b", "", "downstream", "a:b"];
    expect(new Set(names.map((name) => downstreamKeyOf(key, name))).size).toBe(names.length);
    expect(downstreamKeyOf(key, "stripe")).toBe(downstreamKeyOf(key, "stripe"));
    expect(downstreamKeyOf(key, "stripe")).toMatch(/^[\w-]{43}$/);
    expect(downstreamKeyOf(key, "stripe")).not.toBe(key);
  });
});

describe("the parts of a key", () => {
  it('become text by one rule: 1 and "1" are one caller, dates and identifiers are stable', () => {
    class Uuid {
      toString() {
        return "0190-7";
      }
    }
    const texts: [unknown, string[]][] = [
      [1, ["1"]],
      ["1", ["1"]],
      [1n, ["1"]],
      [-0, ["0"]],
      [true, ["true"]],
      [new Date(Date.UTC(2026, 0, 2)), ["2026-01-02T00:00:00.000Z"]],
      [new Uuid(), ["0190-7"]],
      [new URL("https://a.example/x"), ["https://a.example/x"]],
      [new String("x"), ["x"]],
      [
        ["a", 1],
        ["a", "1"],
      ],
    ];
    for (const [input, expected] of texts) expect(partsOf(input)).toEqual(expected);
  });

  it.each([
    [undefined],
    [null],
    [""],
    [[]],
    [[undefined]],
    [[null, null]],
    [["a", ""]],
    [["a", null]],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    [new Date(Number.NaN)],
  ])("that are missing are refused, never shared: %j", (missing) => {
    expect(partsOf(missing)).toBeUndefined();
    expect(isUnusable(missing)).toBe(false);
    expect(scopeOf(missing)).toBe(MISSING_SCOPE);
  });

  it("that can name nobody are told apart from missing ones", () => {
    const unusable: unknown[] = [
      {},
      { id: 1 },
      [["nested"]],
      Symbol("x"),
      () => "x",
      new Map(),
      { toString: "not a function" },
      { toString: () => ({}) },
      {
        toString() {
          throw new Error("no text");
        },
      },
      { toString: () => "" },
      Object.create(null),
      Object.create({ toString: () => "[object Object]" }),
      new Uint8Array([0xff]),
      Buffer.from([0xfe]),
    ];
    for (const input of unusable.flatMap((part) => [part, ["a", part], [null, part]])) {
      expect(partsOf(input)).toBeUndefined();
      expect(isUnusable(input)).toBe(true);
      expect(() => scopeOf(input)).toThrow(/scope must be a text, number/);
    }
  });
});

describe("a scope that was said already", () => {
  it("is taken as it is; what only looks like one is refused", () => {
    expect(scopeValueOf(GLOBAL_SCOPE)).toBe(GLOBAL_SCOPE);
    expect(scopeValueOf({ kind: "of", parts: ["a"] })).toEqual({ kind: "of", parts: ["a"] });
    expect(scopeValueOf("a")).toEqual({ kind: "of", parts: ["a"] });
    for (const missing of [MISSING_SCOPE, { kind: "of", parts: [null] }, null, undefined]) {
      expect(scopeValueOf(missing)).toBe(MISSING_SCOPE);
    }
    for (const odd of [{ kind: "of" }, { kind: "of", parts: [{}] }, { kind: "x" }, {}]) {
      expect(() => scopeValueOf(odd)).toThrow(expect.objectContaining({ code: "CONFIGURATION_INVALID" }));
    }
  });
});
