import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mistakes } from "./bite/mistakes.mjs";
import { library, root } from "./workspace.mjs";

const table = readFileSync(join(root, "docs/reliability.md"), "utf8");

test.each(mistakes)(
  "$name: can still be made, and its test is there",
  ({ name, file, find, replace, test: path }) => {
    const source = readFileSync(join(library, "src", file), "utf8");
    expect(source.split(find)).toHaveLength(2);
    expect(replace).not.toBe(find);
    expect(existsSync(join(library, path))).toBe(true);
    expect(table).toContain(`| ${name} | `);
    expect(table).toContain(path);
  },
);
