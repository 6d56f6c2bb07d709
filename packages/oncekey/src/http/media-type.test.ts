import { describe, expect, it } from "vitest";
import { decodeText, essenceOf, isJson, parameterOf } from "./media-type.js";

describe("essenceOf", () => {
  it.each([
    ["application/json", "application/json"],
    ["Application/JSON ; charset=UTF-8", "application/json"],
    [" text/plain", "text/plain"],
    [undefined, ""],
    ["", ""],
  ])("of %j is %j", (contentType, essence) => {
    expect(essenceOf(contentType)).toBe(essence);
  });

  it("knows JSON by its name and by its suffix", () => {
    expect(["application/json", "application/merge-patch+json"].every(isJson)).toBe(true);
    expect(["text/json", "application/jsonp", "application/json-seq", ""].some(isJson)).toBe(false);
  });
});

describe("parameterOf", () => {
  it.each([
    ["multipart/form-data; boundary=abc", "abc"],
    ['multipart/form-data; charset=x;Boundary="a;b \\"c"', 'a;b "c'],
    ["multipart/form-data; boundary=one; boundary=two", "one"],
    ["multipart/form-data; xboundary=abc", undefined],
    ['text/plain; note="boundary=abc"', undefined],
    ["multipart/form-data", undefined],
    [undefined, undefined],
  ])("finds the boundary of %j", (contentType, boundary) => {
    expect(parameterOf(contentType, "boundary")).toBe(boundary);
  });
});

describe("decodeText", () => {
  const bytes = (...values: number[]) => Uint8Array.from(values);

  it("decodes UTF-8 without its byte order mark", () => {
    expect(decodeText("application/json", bytes(0xef, 0xbb, 0xbf, 0xc3, 0xbc))).toBe("ü");
    expect(decodeText("application/json; charset=UTF-8", bytes(0x61))).toBe("a");
    expect(decodeText('application/json; charset="utf8"', bytes(0x61))).toBe("a");
  });

  it("gives no text for bytes that are none, or of another charset", () => {
    expect(decodeText("application/json", bytes(0xff, 0x01))).toBeUndefined();
    expect(decodeText("application/json; charset=latin1", bytes(0x61))).toBeUndefined();
  });
});
