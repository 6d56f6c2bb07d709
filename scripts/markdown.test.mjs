import { describe, expect, it } from "vitest";
import { extractBlocks } from "./markdown.mjs";

/** @param {...string} lines */
function page(...lines) {
  return extractBlocks("docs/a/page.md", `${lines.join("\n")}\n`);
}

describe("extractBlocks", () => {
  it("makes one module of each ts block, and leaves everything else alone", () => {
    const { blocks } = page(
      "```ts",
      "const a = 1;",
      "```",
      "```json",
      "{}",
      "```",
      "```sh",
      "npm test",
      "```",
    );
    expect(blocks).toMatchObject([{ file: "docs_a_page/01.ts", runs: false }]);
    expect(blocks[0]?.text).toBe("const a = 1;\n\nexport {};\n");
  });

  it("marks what is to be run", () => {
    const { blocks } = page("```ts run", "throw 1;", "```", "```sh run", "false", "```");
    expect(blocks).toMatchObject([
      { file: "docs_a_page/01.ts", runs: true },
      { file: "docs_a_page/02.sh", runs: true, text: "false\n" },
    ]);
  });

  it("puts a setup before each block that follows, until the next one", () => {
    const { blocks } = page(
      "```ts",
      "one",
      "```",
      "<!-- setup",
      "declare const x: 1;",
      "-->",
      "```ts",
      "two",
      "```",
      "<!-- setup -->",
      "```ts",
      "three",
      "```",
    );
    expect(blocks.map(({ text }) => text.split("\n")[0])).toEqual(["one", "declare const x: 1;", "three"]);
  });

  it("finds the line of the page for a line of the module, with and without a setup", () => {
    const { blocks } = page(
      "# title",
      "```ts",
      "one",
      "```",
      "<!-- setup",
      "a",
      "b",
      "-->",
      "```ts",
      "two",
      "```",
    );
    expect(blocks.map(({ lineOffset }) => lineOffset)).toEqual([2, 7]);
    expect(
      blocks.map(
        ({ text, lineOffset }) => text.split("\n").findIndex((line) => /one|two/.test(line)) + 1 + lineOffset,
      ),
    ).toEqual([3, 10]);
  });

  it("names a module by its first line, and takes the indent of a list off its block", () => {
    const { blocks } = page(
      "* item",
      "",
      "  ```ts",
      "  // @file shared.ts",
      "  if (a) {",
      "    b();",
      "  }",
      "  ```",
    );
    expect(blocks[0]?.file).toBe("docs_a_page/shared.ts");
    expect(blocks[0]?.text).toContain("\nif (a) {\n  b();\n}\n");
  });

  it("refuses the names of languages under which a block would go unchecked", () => {
    expect(page("text", "```typescript", "a", "```").problems).toEqual([
      "docs/a/page.md:2: fence it as `ts`, so that it is checked",
    ]);
  });
});
