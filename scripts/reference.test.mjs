import { describe, expect, it } from "vitest";
import { sayable } from "./reference/messages.mjs";
import { codeSpans, tableRows, withoutBlocks } from "./reference/pages.mjs";

describe("tableRows", () => {
  it("gives the cells of each row, without the head", () => {
    const page = "text\n\n| a | b |\n| --- | --- |\n| `x` | one \\| two |\n| y | |\n\n| c |\n| - |\n| z |\n";
    expect(tableRows(page)).toEqual([["`x`", "one | two"], ["y", ""], ["z"]]);
  });

  it("does not look into code", () => {
    expect(tableRows("```text\n| a |\n| - |\n| x |\n```\n")).toEqual([]);
  });
});

describe("codeSpans", () => {
  it("gives what stands in them, whatever their marks", () => {
    expect(codeSpans('`a` and `"b"` and `` c`d `` but not e')).toEqual(["a", '"b"', "c`d"]);
  });
});

describe("withoutBlocks", () => {
  it("takes blocks and setups out", () => {
    expect(withoutBlocks("a\n<!-- setup\nimport x;\n-->\n```ts\n[b](c)\n```\nd\n").trim()).toBe("a\n\n\nd");
  });
});

describe("sayable", () => {
  const isSaid = sayable();

  it("knows texts and templates of the sources, and nothing else", () => {
    expect(isSaid("The process is shutting down. Try again.")).toBe(true);
    expect(isSaid("The request is larger than the 17 bytes that can be compared.")).toBe(true);
    expect(isSaid("The process is shutting up. Try again.")).toBe(false);
  });
});
