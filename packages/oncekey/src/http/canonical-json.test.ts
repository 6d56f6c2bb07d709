import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalText } from "../core/canonical.js";
import { parseJsonText } from "./canonical-json.js";
import { exactNumber, parseExactly } from "./exact-json.js";

/** The canonical text of a JSON text; `undefined` if it is not one. */
function canonicalizeJsonText(text: string): string | undefined {
  const parsed = parseJsonText(text);
  return parsed && canonicalText(parsed.value);
}

/** RFC 8785 as one would write it down. */
function reference(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(reference).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${reference(member)}`).join(",")}}`;
}

/** The same value in another spelling: members turned round, white space, every character an escape. */
function respell(value: unknown): string {
  const escaped = (text: string) =>
    `"${[...Array(text.length).keys()].map((at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")}"`;
  if (typeof value === "string") return escaped(value);
  if (Array.isArray(value)) return `[ ${value.map(respell).join(" ,\n")} ]`;
  if (typeof value !== "object" || value === null) return ` ${JSON.stringify(value)}\t`;
  const members = Object.entries(value).reverse();
  return `{${members.map(([name, member]) => `\r\n${escaped(name)} : ${respell(member)}`).join(",")}}`;
}

const anyJson = fc.jsonValue({ maxDepth: 5, stringUnit: "binary" });

describe("parseJsonText, written in canonical form", () => {
  it("gives the RFC 8785 text, whatever the spelling", () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        expect(canonicalizeJsonText(JSON.stringify(value, null, 2))).toBe(reference(value));
        expect(canonicalizeJsonText(respell(value))).toBe(reference(value));
      }),
    );
  });

  it("agrees with what a framework parsed from the same text", () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: "binary" }), (text) => {
        expect(canonicalizeJsonText(text)).toBe(canonicalText(JSON.parse(text)));
      }),
    );
  });

  it.each<[string, string, string]>([
    ["the last of members with one name", '{"a":1,"b":2,"a":3}', '{"a":3,"b":2}'],
    ["the last, also when it is spelled with escapes", '{"a":1,"\\u0061":3}', '{"a":3}'],
    ["-0", "[-0,-0.0,0e7,-0E-2]", "[0,0,0,0]"],
    ["a lone surrogate", '["\\ud83d","\\uDE00x"]', '["\\ud83d","\\ude00x"]'],
    [
      "__proto__ and constructor",
      '{"constructor":1,"__proto__":{"x":1}}',
      '{"__proto__":{"x":1},"constructor":1}',
    ],
    ["a byte order mark", '\ufeff{"a":1}', '{"a":1}'],
    ["spellings of one number", "[1,1.0,10e-1,0.1e1,1E+0]", "[1,1,1,1,1]"],
    [
      "many digits that a double holds",
      "[1.0000000000000000000,100000000000000000000]",
      "[1,100000000000000000000]",
    ],
  ])("defines %s", (_what, text, canonical) => {
    expect(canonicalizeJsonText(text)).toBe(canonical);
  });

  it.each([
    ['{"id":12345678901234567890}', '{"id":12345678901234567891}'],
    ["[9007199254740993]", "[9007199254740992]"],
    ["0.1000000000000000055511151231257827", "0.1"],
    ["1e400", "1e401"],
    ["1e400", "-1e400"],
    ["1e-400", "0"],
    ["4.9406564584124654e-324", "5e-324"],
    ["1e99999999999999999999", "1e99999999999999999998"],
    ['{"a":[1,{"b":-1.7976931348623159e309}]}', '{"a":[1,{"b":-1.7976931348623158e309}]}'],
    ["1234567.8901234567", "1234567.8901234568"],
  ])("tells %s from %s", (one, other) => {
    expect(canonicalizeJsonText(one)).not.toBe(canonicalizeJsonText(other));
  });

  it.each([
    ["12345678901234567891", "1234567890123456789.1e1"],
    ["1e400", "0.001E+403"],
    ["1e400", "1000e0397"],
    ["-12345678901234567891", "-12345678901234567891.000"],
    ["1e-400", "0.1e-399"],
  ])("takes %s and %s for one number", (one, other) => {
    expect(canonicalizeJsonText(one)).toBe(canonicalizeJsonText(other));
  });

  it("gives no exact number the text of any double", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 10n ** 15n, max: 10n ** 40n }),
        fc.integer({ min: -330, max: 330 }),
        (digits, power) => {
          const text = canonicalizeJsonText(`${digits}e${power}`);
          // Where the text reads as a double is written, it has to mean that very double.
          if (text !== undefined && `${Number(text)}` === text) {
            expect(exactNumber(`${digits}e${power}`)).toBe(Number(text));
          }
        },
      ),
    );
  });

  it("tells decimal numbers apart just when their values differ", () => {
    const decimal = fc.record({ digits: fc.bigInt({ min: 0n, max: 10n ** 20n }), zeros: fc.nat({ max: 4 }) });
    fc.assert(
      fc.property(decimal, decimal, (a, b) => {
        const text = ({ digits, zeros }: typeof a) => `${digits}${"0".repeat(zeros)}e-${zeros + 3}`;
        expect(canonicalizeJsonText(text(a)) === canonicalizeJsonText(text(b))).toBe(a.digits === b.digits);
      }),
    );
  });

  it.each([
    "",
    " ",
    "{",
    '{"a":1,}',
    "undefined",
    "NaN",
    "01",
    "[1]x",
    "'a'",
    '{"a":1}\ufeff',
    "\ufeff\ufeff1",
    '"\n"',
  ])("has no canonical text for %j", (text) => {
    expect(canonicalizeJsonText(text)).toBeUndefined();
  });

  it.each(["1", "12345678901234567891"])("reads 100,000 levels around %s", (core) => {
    const deep = `${'{"b":1,"a":['.repeat(50_000)}${core}${"]}".repeat(50_000)}`;
    const canonical = `${'{"a":['.repeat(50_000)}${canonicalizeJsonText(core)}${'],"b":1}'.repeat(50_000)}`;
    expect(canonicalizeJsonText(deep)).toBe(canonical);
  });

  it("does not take long numbers in strings for numbers", () => {
    const text = '{"card":"4111111111111111","note":"id: 12345678901234567890, 1e999","b":[true,false,null]}';
    expect(parseJsonText(text)?.value).toEqual(JSON.parse(text));
  });
});

describe("parseExactly", () => {
  it("gives what JSON.parse gives where a double holds every number", () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        for (const text of [JSON.stringify(value), respell(value)]) {
          expect(parseExactly(text)).toEqual(JSON.parse(text));
        }
      }),
    );
  });

  it("finds the end of strings with escapes before the quotation mark", () => {
    const text = String.raw`{"a\\":"\"","\"b\\\"":["\\\\","]"],"c":"\\\"}"}`;
    expect(parseExactly(text)).toEqual(JSON.parse(text));
  });

  it("makes a member of __proto__", () => {
    const value = parseExactly('{"__proto__":{"polluted":true}}') as Record<string, unknown>;
    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect(value.polluted).toBeUndefined();
  });
});
