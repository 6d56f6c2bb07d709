/**
 * @module scripts/reference/spec
 *
 * Each line of `docs/spec-compliance.md` names what proves it, in its last column: cases of the HTTP contract in code spans,
 * or `title` followed by a link to the test file that has it. A line that binds clients or
 * the service's own documentation says so, beginning with "By". This holds the names to those that exist.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../workspace.mjs";
import { importBuilt, readPage, tableRows } from "./pages.mjs";

const page = "docs/spec-compliance.md";

/** @returns {Promise<string[]>} */
export async function checkSpecTable() {
  const { httpContract } = await importBuilt("testing/index.js");
  /** @type {Set<string>} */
  const cases = new Set(httpContract.map((/** @type {{ name: string }} */ { name }) => name));
  return tableRows(readPage(page)).flatMap((row) =>
    proofProblems(row.at(-1) ?? "", cases).map(
      (problem) => `${page}, ${row.slice(0, 2).join(" ")}: ${problem}`,
    ),
  );
}

/**
 * @param {string} cell the last one of a row
 * @param {ReadonlySet<string>} cases
 * @returns {string[]}
 */
function proofProblems(cell, cases) {
  const proofs = [...cell.matchAll(/`([^`]+)`(?: in \[[^\]]*\]\(([^)]+)\))?/g)];
  if (proofs.length === 0 && !cell.startsWith("By ")) return ["nothing proves it"];
  return proofs.flatMap(([, name = "", file]) => {
    if (file === undefined) return cases.has(name) ? [] : [`the contract has no case "${name}"`];
    return hasTitle(file, name) ? [] : [`${file} has no test "${name}"`];
  });
}

/**
 * @param {string} file as linked from the page
 * @param {string} title
 */
function hasTitle(file, title) {
  const path = join(root, "docs", file);
  return existsSync(path) && readFileSync(path, "utf8").includes(`"${title}"`);
}
