import { describe, expect, it } from "vitest";
import { sayable } from "./reference/messages.mjs";
import { codeSpans, tableRows, withoutBlocks } from "./reference/pages.mjs";
import { proofProblems, titlesOf } from "./reference/proofs.mjs";

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

describe("titlesOf", () => {
  it("gives the titles of tests, however they are made, and nothing that only stands in them", () => {
    const source = [
      'describe("no test", () => {',
      '  it("one", () => call("not this"));',
      '  it.each([["row"]])("two %s", run);',
      `  it(\`three \${count}\`, run);`,
      '  it.concurrent("four", run);',
      "});",
    ].join("\n");
    expect([...titlesOf(source)]).toEqual(["one", "two %s", `three \${count}`, "four"]);
  });
});

describe("proofProblems", () => {
  const cases = new Set(["a case"]);
  const here = "../scripts/reference.test.mjs";
  const link = `[here](${here})`;

  it("finds names that do not exist, and lines without any", () => {
    expect(proofProblems("`a case`", cases, "By ")).toEqual([]);
    expect(proofProblems(`\`takes blocks and setups out\` in ${link}`, cases, "By ")).toEqual([]);
    expect(proofProblems("By the service", cases, "By ")).toEqual([]);
    expect(proofProblems("", cases, "By ")).toEqual(["nothing proves it"]);
    expect(proofProblems("`no case`", cases, "By ")).toEqual(['no contract has a case "no case"']);
    expect(proofProblems(`\`no test\` in ${link}`, cases, "By ")).toEqual([`${here} has no test "no test"`]);
    expect(proofProblems("By us: `no case`", cases, "By ")).toHaveLength(1);
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
