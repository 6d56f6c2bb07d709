import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULT_LIMITS } from "../core/limits.js";
import * as syntax from "./key-syntax.js";

const { maxKeyLength } = DEFAULT_LIMITS;
const readKeyField = (lines: readonly string[], most: number = maxKeyLength) =>
  syntax.readKeyField(lines, most);
const readKeyValue = (value: unknown) => syntax.readKeyValue(value, maxKeyLength);
const key = (text: string): syntax.KeyReading => ({ kind: "key", key: text });
const kindOf = (...lines: string[]) => readKeyField(lines).kind;

/** Serialises a String as RFC 9651 §4.1.6 says. */
const quoted = (text: string) => `"${text.replaceAll(/["\\]/g, "\\$&")}"`;

const visible = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 1,
  maxLength: 255,
});

describe("readKeyField", () => {
  it("looks at a run of blanks once, however long it is", () => {
    expect(kindOf(`a${"\t".repeat(500_000)}b`)).toBe("invalid");
  });

  it("takes the quoted and the bare spelling for one key", () => {
    expect(readKeyField(['"8e03978e-40d5-43e8-bc93-6894a57f9324"'])).toEqual(
      key("8e03978e-40d5-43e8-bc93-6894a57f9324"),
    );
    expect(readKeyField(["8e03978e-40d5-43e8-bc93-6894a57f9324"])).toEqual(
      key("8e03978e-40d5-43e8-bc93-6894a57f9324"),
    );
  });

  it("reads back any key that was written as a String", () => {
    fc.assert(
      fc.property(visible, (text) => {
        expect(readKeyField([quoted(text)])).toEqual(key(text));
      }),
    );
  });

  it("reads any bare key that no other reader could take for something else, and refuses the rest", () => {
    fc.assert(
      fc.property(visible, (text) => {
        const reading = readKeyField([text]);
        if (!/[",;]/.test(text)) expect(reading).toEqual(key(text));
        else if (!text.startsWith('"')) expect(reading.kind).toBe("invalid");
      }),
    );
  });

  it("never takes two lines that a proxy joined for one key", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(visible, visible.map(quoted)), { minLength: 2, maxLength: 3 }),
        (lines) => {
          expect(kindOf(lines.join(", "))).toBe("invalid");
          expect(kindOf(...lines)).toBe("invalid");
        },
      ),
    );
    // Each line is half a String; together they are a valid one.
    expect(kindOf('"a, b"')).toBe("invalid");
    expect(kindOf('"a', 'b"')).toBe("invalid");
  });

  it("does not count white space around the value", () => {
    expect(readKeyField([' \t"abc" '])).toEqual(key("abc"));
    expect(readKeyField(["abc\t"])).toEqual(key("abc"));
  });

  it.each([
    '"k";a=1',
    '"k"; a=-12.5;b;*c="x \\" y"',
    '"k";t=text/html;q=0.5',
    '"k";bytes=:aGVsbG8=:;yes=?1;at=@1659578233;name=%"f%c3%bc"',
  ])("checks and ignores parameters: %s", (field) => {
    expect(readKeyField([field])).toEqual(key("k"));
  });

  it("takes 256 parameters, and names of 64 characters", () => {
    const names = Array.from({ length: 256 }, (_, index) => `;p${index.toString(36)}`);
    expect(readKeyField([`"8e03978e"${names.join("")}`])).toEqual(key("8e03978e"));
    expect(readKeyField([`"8e03978e";${"n".repeat(64)}=1`])).toEqual(key("8e03978e"));
  });

  it.each([
    ["nothing", ""],
    ["white space", "  "],
    ["an empty String", '""'],
    ["an open quotation mark", '"abc'],
    ["a closing one alone", 'abc"'],
    ["a quotation mark inside", 'abc"def'],
    ["a String and more", '"abc"def'],
    ["two Strings", '"abc" "def"'],
    ["an escape that there is not", '"a\\bc"'],
    ["a backslash at the end", '"abc\\"'],
    ["a comma", "a,b"],
    ["a list of Strings", '"a", "b"'],
    ["a list after parameters", '"a";x=1, "b"'],
    ["a bare semicolon", "a;b=1"],
    ["a space", "a b"],
    ["a space in quotation marks", '"a b"'],
    ["a tabulator inside", '"a\tb"'],
    ["a line break", "a\nb"],
    ["NUL", "a\0b"],
    ["DEL", "a\x7fb"],
    ["text beyond ASCII", "schlüssel"],
    ["text beyond ASCII in quotation marks", '"schlüssel"'],
    ["an emoji", "🔑"],
    ["a parameter without a name", '"a";'],
    ["a parameter in capitals", '"a";A=1'],
    ["a parameter without a value after =", '"a";a='],
    ["a parameter with an open String", '"a";a="x'],
    ["an Integer of 16 digits as parameter", '"a";a=1234567890123456'],
  ])("refuses %s", (_what, field) => {
    expect(kindOf(field)).toBe("invalid");
  });

  it("tells missing from empty", () => {
    expect(readKeyField([])).toEqual({ kind: "missing" });
    expect(kindOf("")).toBe("invalid");
  });

  it("counts characters of the key, not of its spelling", () => {
    const longest = '"'.repeat(255);
    expect(readKeyField([quoted(longest)])).toEqual(key(longest));
    expect(readKeyField([`${quoted(longest)};a=1`])).toEqual(key(longest));
    expect(kindOf(quoted(`${longest}"`))).toBe("invalid");
    expect(kindOf("a".repeat(256))).toBe("invalid");
    expect(readKeyField(["a".repeat(40)], 40)).toEqual(key("a".repeat(40)));
    expect(readKeyField(["a".repeat(41)], 40).kind).toBe("invalid");
  });

  it("refuses a key of 10 kB, quoted or bare", () => {
    expect(kindOf("a".repeat(10_240))).toBe("invalid");
    expect(kindOf(quoted("\\".repeat(10_240)))).toBe("invalid");
  });

  it("never repeats the key in its reason", () => {
    const secret = "sk_live_1234";
    const fields = [
      `${secret} x`,
      `"${secret}`,
      `${secret},`,
      `"${secret}"x`,
      `${secret}ü`,
      secret.repeat(30),
    ];
    for (const field of fields) {
      const reading = readKeyField([field]);
      expect(reading).toMatchObject({ kind: "invalid", reason: expect.not.stringContaining(secret) });
    }
    expect(readKeyField([secret, secret])).toMatchObject({ reason: expect.not.stringContaining(secret) });
  });
});

describe("readKeyValue", () => {
  it("takes text as it is and whole numbers by their digits", () => {
    expect(readKeyValue("order-1;a,b")).toEqual(key("order-1;a,b"));
    expect(readKeyValue(42)).toEqual(key("42"));
  });

  it("tells missing from empty", () => {
    expect(readKeyValue(undefined)).toEqual({ kind: "missing" });
    expect(readKeyValue(null)).toEqual({ kind: "missing" });
    expect(readKeyValue("").kind).toBe("invalid");
  });

  it.each([
    [["a", "b"]],
    [["a"]],
    [{ id: 1 }],
    [1.5],
    [Number.NaN],
    [2 ** 60],
    [true],
    ["a b"],
    ["a".repeat(256)],
  ])("refuses %j", (value) => {
    expect(readKeyValue(value).kind).toBe("invalid");
  });
});
