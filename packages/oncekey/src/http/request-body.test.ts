import { describe, expect, it } from "vitest";
import { type BodyContent, type RequestBody, readBody, readBodyOfKey, readUnparsed } from "./request-body.js";

const encode = (text: string) => new TextEncoder().encode(text);
const FORM = "application/x-www-form-urlencoded";
const part = '--X\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--X--';

describe("readBody", () => {
  it.each<[string, string | undefined, RequestBody, BodyContent]>([
    ["JSON bytes", "application/json", { kind: "bytes", bytes: encode("[1]") }, { kind: "json", value: [1] }],
    ["JSON text", "application/json", { kind: "text", text: "[1]" }, { kind: "json", value: [1] }],
    ["a JSON value", "application/json", { kind: "parsed", value: [1] }, { kind: "json", value: [1] }],
    ["JSON null", "application/json", { kind: "parsed", value: null }, { kind: "json", value: null }],
    [
      "a JSON text value",
      "application/json",
      { kind: "parsed", value: "[1]" },
      { kind: "json", value: "[1]" },
    ],
    [
      "a raw JSON buffer",
      "application/json",
      { kind: "parsed", value: Buffer.from("[1]") },
      { kind: "json", value: [1] },
    ],
    [
      "an ArrayBuffer",
      "text/plain",
      { kind: "parsed", value: encode("a").buffer },
      { kind: "bytes", bytes: encode("a") },
    ],
    ["a form's text", FORM, { kind: "text", text: "a=1" }, { kind: "form", fields: [["a", "1"]] }],
    [
      "a form as text of the framework",
      FORM,
      { kind: "parsed", value: "a=1" },
      { kind: "form", fields: [["a", "1"]] },
    ],
    ["a parsed form", FORM, { kind: "parsed", value: { a: 1 } }, { kind: "form", fields: [["a", "1"]] }],
    [
      "multipart text",
      "multipart/form-data; boundary=X",
      { kind: "text", text: part },
      {
        kind: "multipart",
        parts: [{ name: "a", filename: undefined, contentType: undefined, bytes: encode("1") }],
      },
    ],
    [
      "what another parser made",
      "application/xml",
      { kind: "parsed", value: { a: 1 } },
      { kind: "value", value: { a: 1 } },
    ],
    ["text", undefined, { kind: "parsed", value: "a" }, { kind: "bytes", bytes: encode("a") }],
    ["nothing", "application/json", { kind: "none" }, { kind: "none" }],
    ["no bytes", "application/json", { kind: "bytes", bytes: new Uint8Array(0) }, { kind: "none" }],
    ["no text", FORM, { kind: "text", text: "" }, { kind: "none" }],
    ["nothing parsed", "application/json", { kind: "parsed", value: undefined }, { kind: "none" }],
    ["too much", "video/mp4", { kind: "skipped", length: 9 }, { kind: "skipped", length: 9 }],
  ])("reads %s", (_what, contentType, body, content) => {
    expect(readBody(contentType, body)).toEqual(content);
  });

  it.each<[string, string, string]>([
    ["JSON", "application/json", '{"a":'],
    ["JSON in a charset that is none of JSON", "application/json; charset=utf-16", "{}"],
    ["a form", FORM, "a=%zz"],
    ["multipart", "multipart/form-data; boundary=Y", part],
    ["multipart without a boundary", "multipart/form-data", part],
  ])("takes malformed %s by its bytes", (_what, contentType, text) => {
    const bytes = encode(text);
    expect(readBody(contentType, { kind: "bytes", bytes })).toEqual({ kind: "bytes", bytes });
  });
});

describe("readUnparsed", () => {
  it("gives the bytes there are, and none of a value", () => {
    const bytes = { kind: "bytes", bytes: encode("{}") };
    expect(readUnparsed({ kind: "bytes", bytes: encode("{}") })).toEqual(bytes);
    expect(readUnparsed({ kind: "text", text: "{}" })).toEqual(bytes);
    expect(readUnparsed({ kind: "parsed", value: "{}" })).toEqual(bytes);
    expect(readUnparsed({ kind: "parsed", value: encode("{}") })).toEqual(bytes);
    expect(readUnparsed({ kind: "parsed", value: {} })).toBeUndefined();
    expect(readUnparsed({ kind: "text", text: "" })).toEqual({ kind: "none" });
    expect(readUnparsed({ kind: "none" })).toEqual({ kind: "none" });
  });
});

describe("a body with the key in it", () => {
  it("is parsed once for the key and the fingerprint", () => {
    const body = { kind: "text", text: '{"key":"a"}' } as const;
    const content = readBodyOfKey("application/json", body);
    expect(readBody("application/json", body)).toBe(content);
    expect(readBody("application/json", { ...body })).not.toBe(content);
  });
});
