import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { literal, parameters } from "./sql.js";

describe("a value in a statement", () => {
  it("is a literal that ends nowhere but at its end, whatever the mode of the server", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const [, quoted, hex] = /^(?:'([^'\\\\]*)'|_utf8mb4 x'([0-9a-f]*)')$/.exec(literal(text)) ?? [];
        expect(quoted ?? Buffer.from(hex ?? "", "hex").toString("utf8")).toBe(
          Buffer.from(text, "utf8").toString("utf8"),
        );
      }),
    );
  });

  it("of another kind is written as what it is", () => {
    expect([null, 1.5, new Uint8Array([0, 255]), new Uint8Array()].map(literal)).toEqual([
      "NULL",
      "1.5",
      "x'00ff'",
      "x''",
    ]);
    expect(() => literal(Number.NaN)).toThrow(TypeError);
  });

  it("as a parameter needs no quoting that depends on a mode", () => {
    const { bind, values } = parameters();
    expect([bind("plain"), bind("it's"), bind(7), bind(null)]).toEqual(["?", "?", "?", "?"]);
    expect(values).toEqual(["plain", Buffer.from("it's"), 7, null]);
  });
});
