import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type DecodedResult, decodeResult, encodeError, RESULT_TOMBSTONE } from "./codec.js";
import { isOncekeyError } from "./errors.js";
import type { StoredOutcome } from "./record.js";

const MANY = 1_000_000;

describe("encodeError", () => {
  function replay(error: unknown): DecodedResult {
    const encoded = encodeError(error, MANY);
    return encoded.kind === "encoded" ? decodeResult(encoded.outcome) : { kind: "tombstone" };
  }

  it.each<[unknown, { name: string; message: string; code?: string | undefined }]>([
    [new TypeError("no card"), { name: "TypeError", message: "no card", code: undefined }],
    [
      Object.assign(new Error("x"), { code: "E_CARD", name: "CardError" }),
      { name: "CardError", message: "x", code: "E_CARD" },
    ],
    [Object.assign(new Error("x"), { code: 14 }), { name: "Error", message: "x", code: "14" }],
    [
      new (class Declined extends Error {
        override name = "Declined";
      })("\ud800"),
      { name: "Declined", message: "\ud800" },
    ],
    ["declined", { name: "Error", message: "declined" }],
    [undefined, { name: "Error", message: "undefined" }],
    [{ code: "E_X" }, { name: "Error", message: "", code: "E_X" }],
    [Object.create(null), { name: "Error", message: "" }],
  ])("keeps name, message and code of %s", (error, expected) => {
    const replayed = replay(error);
    expect(
      replayed.kind === "error" && {
        ...replayed.error,
        name: replayed.error.name,
        message: replayed.error.message,
      },
    ).toMatchObject({ replayed: true, ...expected });
  });

  it("does not keep an error that is too large or cannot be read", () => {
    expect(encodeError(new Error("x".repeat(100)), 50)).toMatchObject({
      kind: "not-kept",
      reason: "too-large",
    });
    const hostile = {
      get message(): string {
        throw new Error("no");
      },
    };
    expect(encodeError(hostile, MANY)).toMatchObject({ kind: "not-kept", reason: "unsupported" });
  });
});

describe("decodeResult", () => {
  const written = (head: string, text: string): StoredOutcome => ({
    head,
    body: new TextEncoder().encode(text),
  });

  it("tells a tombstone whatever its head", () => {
    expect(decodeResult(RESULT_TOMBSTONE)).toEqual({ kind: "tombstone" });
    expect(decodeResult({ head: "future/9", body: undefined })).toEqual({ kind: "tombstone" });
  });

  it.each([
    ["an unknown format", "json/2", "{}"],
    ["no format", "", "{}"],
    ["cut JSON", "json/1", '{"a":'],
    ["an empty body", "json/1", ""],
    ["a byte order mark", "json/1", "\ufeff{}"],
    ["a class of bytes that does not exist", "bytes/1 Function", "abc"],
    ["bytes that do not fill an element", "bytes/1 Float64Array", "abc"],
    ["an error without a message", "error/1", '{"name":"Error"}'],
    ["an error that is null", "error/1", "null"],
    ["a pattern", "value/1", '[["RegExp","x"]]'],
    ["a URL", "value/1", '[["URL","https://x.test"]]'],
    ["a boxed value", "value/1", '[["Object",1],1]'],
    ["a Temporal", "value/1", '[["Temporal.Instant","2020-01-01T00:00Z"]]'],
    ["a view of devalue's own", "value/1", '[["Uint8Array",1],["ArrayBuffer","AA=="]]'],
    ["an unknown class", "value/1", '[["Function",1],"return 1"]'],
    ["an unknown error", "value/1", '[["Error",1],[2],"constructor"]'],
    ["an error with half a member", "value/1", '[["Error",1],[2,2],"Error"]'],
    ["an error of nothing", "value/1", '[["Error",-1]]'],
    ["bytes of nothing", "value/1", '[["Bytes",1],[2,3],"Uint8Array",4]'],
    ["an error that holds itself", "value/1", '[["Error",0]]'],
    ["a member that would change the prototype", "value/1", '[{"__proto__":1},{"polluted":2},1]'],
    ["an index out of range", "value/1", "[[7]]"],
    ["an array longer than arrays are", "value/1", "[[-7,4294967296]]"],
    [
      "deep nesting",
      "value/1",
      `[${Array.from({ length: 100_000 }, (_, index) => `[${index + 1}]`).join(",")},1]`,
    ],
  ])("refuses %s", (_, head, text) => {
    let thrown: unknown;
    try {
      decodeResult(written(head, text));
    } catch (error) {
      thrown = error;
    }
    expect(isOncekeyError(thrown, "RECORD_UNREADABLE")).toBe(true);
    expect((thrown as Error).cause).toBeUndefined();
    if (text.length > 2) expect((thrown as Error).message).not.toContain(text);
  });

  it("refuses bytes that are not UTF-8", () => {
    expect(() => decodeResult({ head: "json/1", body: Uint8Array.of(0x22, 0xff, 0x22) })).toThrow("damaged");
  });

  it("never changes a prototype, whatever was written", () => {
    const hostile = ['{"__proto__":{"polluted":1}}', '{"constructor":{"prototype":{"polluted":1}}}'];
    for (const text of hostile) decodeResult(written("json/1", text));
    const escaped = '[{"\\u0000__proto__":1,"a":1},{"polluted":2},1]';
    const decoded = decodeResult(written("value/1", escaped)) as { value: object };
    expect(Object.getPrototypeOf(decoded.value)).toBe(Object.prototype);
    expect(Object.hasOwn(decoded.value, "__proto__")).toBe(true);
    expect("polluted" in {}).toBe(false);
  });

  it("gives a value or a coded error for any bytes at all", () => {
    const start = fc.constantFrom("value/1", "json/1", "error/1", "bytes/1 Int16Array", "value");
    const token = fc.constantFrom(
      "[",
      "]",
      "{",
      "}",
      '"Error"',
      '"Map"',
      '"__proto__":',
      "-7",
      ",",
      "0",
      "1",
      "2",
      '"null"',
    );
    fc.assert(
      fc.property(start, fc.array(token, { maxLength: 30 }), (head, tokens) => {
        try {
          decodeResult(written(head, tokens.join("")));
        } catch (error) {
          expect(isOncekeyError(error, "RECORD_UNREADABLE")).toBe(true);
        }
        expect(Object.keys(Object.prototype)).toEqual([]);
      }),
      { numRuns: 2_000 },
    );
  });
});
