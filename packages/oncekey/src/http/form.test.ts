import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { flattenForm, formDocument, parseForm } from "./form.js";

describe("parseForm", () => {
  it("reads what URLSearchParams writes", () => {
    // Brackets have a meaning of their own.
    const name = fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("[", "("));
    const fields = fc.array(fc.tuple(name, fc.string({ unit: "grapheme" })));
    fc.assert(
      fc.property(fields, (pairs) => {
        const params = new URLSearchParams(pairs);
        const sorted = new URLSearchParams(params);
        sorted.sort();
        expect(parseForm(params.toString())).toEqual([...sorted]);
      }),
    );
  });

  it("does not see the order of different names, and sees the order of equal ones", () => {
    expect(parseForm("b=1&a=2&b=3")).toEqual(parseForm("a=2&b=1&b=3"));
    expect(parseForm("b=1&b=3")).not.toEqual(parseForm("b=3&b=1"));
  });

  // Readers that nest make one list of both, in the order sent.
  it.each([
    ["a=1&a[]=2", "a[]=2&a=1"],
    ["a[0]=1&a[]=2", "a[]=2&a[0]=1"],
    ["a=1&a[b]=2", "a[b]=2&a=1"],
    ["[a]=1&a=2", "a=2&[a]=1"],
    ["b=0&a[]=1&a=2", "b=0&a=2&a[]=1"],
  ])("sees the order of what may be one list: %j", (one, other) => {
    expect(parseForm(one)).not.toEqual(parseForm(other));
    expect(parseForm(`c=1&${one}`)).toEqual(parseForm(`${one}&c=1`));
  });

  it.each([
    ["a=b=c", [["a", "b=c"]]],
    ["a", [["a", ""]]],
    ["=b", [["", "b"]]],
    ["&&a=1&", [["a", "1"]]],
    ["a+b=c%20d%2B", [["a b", "c d+"]]],
    ["", []],
  ])("reads %j", (text, fields) => {
    expect(parseForm(text)).toEqual(fields);
  });

  it.each(["a=%zz", "a=%", "a=%ff", "%c3=1"])(
    "has no fields for %j, which readers understand differently",
    (text) => {
      expect(parseForm(text)).toBeUndefined();
    },
  );
});

describe("flattenForm", () => {
  it("gives the fields that were sent", () => {
    expect(flattenForm({ b: "1", a: ["2", "3"], c: { d: "4", e: { f: "5" } }, g: [{ h: "6" }] })).toEqual(
      parseForm("b=1&a=2&a=3&c[d]=4&c[e][f]=5&g[0][h]=6"),
    );
  });

  it("agrees with the text for every flat form", () => {
    const name = fc.string({
      unit: fc.constantFrom("a", "b", "c", " ", "%", "ü"),
      minLength: 1,
      maxLength: 3,
    });
    fc.assert(
      fc.property(fc.dictionary(name, fc.array(fc.string(), { minLength: 1, maxLength: 3 })), (form) => {
        const text = new URLSearchParams(
          Object.entries(form).flatMap(([key, all]) => all.map((one): [string, string] => [key, one])),
        );
        const parsed = Object.entries(form).map(([key, all]) => [key, all.length === 1 ? all[0] : all]);
        expect(flattenForm(Object.fromEntries(parsed))).toEqual(parseForm(text.toString()));
      }),
    );
  });

  it("ends, whatever it is given", () => {
    const cyclic: Record<string, unknown> = { empty: null, missing: undefined, yes: true };
    cyclic.self = cyclic;
    expect(flattenForm(cyclic).length).toBeGreaterThan(3);
  });
});

describe("formDocument", () => {
  it("holds a list for a name sent more than once, and __proto__ as a name like any other", () => {
    const document = formDocument(parseForm("b=1&a=2&b=3&b=4&__proto__=5") ?? []);
    expect(Object.entries(document)).toEqual([
      ["__proto__", "5"],
      ["a", "2"],
      ["b", ["1", "3", "4"]],
    ]);
  });
});
