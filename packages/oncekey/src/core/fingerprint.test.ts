import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  compareFingerprints,
  fingerprintOf,
  fingerprintTag,
  fingerprintValue,
  NO_FINGERPRINT,
} from "./fingerprint.js";

const tag = fingerprintTag("t1");

describe("fingerprintOf", () => {
  it("never lets two lists of parts meet", () => {
    const part = fc.oneof(
      fc.string(),
      fc.uint8Array({ maxLength: 8 }),
      fc.constantFrom("t1:a", "b", "", "1:"),
    );
    const parts = fc.array(part, { maxLength: 5 });
    const plain = (list: readonly (string | Uint8Array)[]) =>
      JSON.stringify(list.map((one) => (typeof one === "string" ? one : [...one])));
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        expect(fingerprintOf(tag, a) === fingerprintOf(tag, b)).toBe(plain(a) === plain(b));
      }),
    );
  });

  it("keeps apart what concatenates alike, and text from the bytes that spell it", () => {
    const lists = [
      ["ab", "c"],
      ["a", "bc"],
      ["abc"],
      ["abc", ""],
      ["", "abc"],
      [new TextEncoder().encode("abc")],
      [],
    ];
    expect(new Set(lists.map((parts) => fingerprintOf(tag, parts))).size).toBe(lists.length);
  });

  it("is frozen: a stored fingerprint has to compare after an upgrade", () => {
    expect(fingerprintOf(tag, ["POST", "/orders", new Uint8Array([1])])).toBe(
      "t1:cFiU5Ft29TVRxXnbtry4euU6smf57r1jlcLy51U1CBo",
    );
    expect(fingerprintValue({ b: [1, "x", null], a: new Date(0) })).toBe(
      "v1:qknhtM9HuKpjV3lHABP2vzSUB2s-M75ENr0s43BDUgM",
    );
  });
});

describe("fingerprintTag", () => {
  it("differs with the settings, not with the order they are written in", () => {
    expect(fingerprintTag("f1", { a: 1, b: 2 })).toBe(fingerprintTag("f1", { b: 2, a: 1 }));
    expect(fingerprintTag("f1", { a: 1 })).not.toBe(fingerprintTag("f1", { a: 2 }));
    expect(fingerprintTag("f1", { a: 1 })).toMatch(/^f1\.[\w-]{8}$/);
  });

  it("refuses a name that could not be read back", () => {
    expect(() => fingerprintTag("a:b")).toThrow(TypeError);
    expect(() => fingerprintTag("")).toThrow(TypeError);
  });
});

describe("compareFingerprints", () => {
  const same = fingerprintOf(tag, ["a"]);
  const longerTag = fingerprintTag("t12");

  it("tells same from different only under one tag", () => {
    expect(compareFingerprints(same, fingerprintOf(tag, ["a"]))).toBe("same");
    expect(compareFingerprints(same, fingerprintOf(tag, ["b"]))).toBe("different");
    expect(compareFingerprints(same, fingerprintOf(longerTag, ["a"]))).toBe("incomparable");
    expect(compareFingerprints(fingerprintOf(longerTag, ["a"]), same)).toBe("incomparable");
  });

  it("takes anything for the same where nothing was fingerprinted, and cannot compare off with on", () => {
    expect(compareFingerprints(NO_FINGERPRINT, NO_FINGERPRINT)).toBe("same");
    expect(compareFingerprints(NO_FINGERPRINT, same)).toBe("incomparable");
    expect(compareFingerprints(same, NO_FINGERPRINT)).toBe("incomparable");
  });
});
