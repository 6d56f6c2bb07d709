import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesOfText, cheapestBody } from "./text-bytes.js";

const anyText = fc.string({ unit: "binary", maxLength: 3_000 });

describe("bytesOfText", () => {
  it("gives what Node sends for a text, also for halves of surrogate pairs", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(Buffer.compare(bytesOfText(text), Buffer.from(text))).toBe(0);
      }),
    );
  });

  it("never writes over what it gave before", () => {
    const texts = Array.from({ length: 2_000 }, (_, index) => `${index}:${"ä€𝄞x".repeat(index % 90)}`);
    const bytes = texts.map(bytesOfText);
    expect(bytes.map((one) => Buffer.from(one).toString())).toEqual(texts);
  });

  it("holds a longer text apart from the short ones", () => {
    const [short, long, other] = ["x", "x".repeat(3_000), "y"].map((text) => bytesOfText(text).buffer);
    expect([short, other]).not.toContain(long);
  });
});

describe("cheapestBody", () => {
  it("stands for the very same bytes, whatever they are", () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), anyText.map(bytesOfText)), (bytes) => {
        expect(Buffer.compare(Buffer.from(cheapestBody(bytes) as string), bytes)).toBe(0);
      }),
    );
  });

  it("is text where that is the same in every encoding, and it is not too long", () => {
    expect(cheapestBody(bytesOfText('{"paid":true}'))).toBe('{"paid":true}');
    expect(cheapestBody(bytesOfText("ä"))).toBeInstanceOf(Buffer);
    expect(cheapestBody(new Uint8Array(65 * 1024))).toBeInstanceOf(Buffer);
  });
});
