/**
 * @module scripts/reference/proofs
 *
 * A page that says what is proved names the proof in the last column of its tables: cases of the contracts in code spans,
 * or `title` followed by a link to the test file that has it. This holds the names to those that exist.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { root } from "../workspace.mjs";
import { importBuilt, readPage, tableRows } from "./pages.mjs";

/** @typedef {"storeContract" | "httpContract" | "jobContract" | "consumerContract"} Contract */

/**
 * Every row of a page's tables names its proof.
 *
 * @param {string} page
 * @param {readonly Contract[]} contracts those whose cases a name without a link may name
 * @param {string} without what a cell begins with that may do without proof
 * @returns {Promise<string[]>}
 */
export async function checkProofs(page, contracts, without) {
  const cases = await contractCases(contracts);
  return tableRows(readPage(page)).flatMap((row) =>
    proofProblems(row.at(-1) ?? "", cases, without).map(
      (problem) => `${page}, ${row.slice(0, 2).join(" ")}: ${problem}`,
    ),
  );
}

/**
 * The cases of the contracts, which every store and every adapter runs.
 *
 * @param {readonly Contract[]} contracts
 * @returns {Promise<ReadonlySet<string>>}
 */
async function contractCases(contracts) {
  const testing = await importBuilt("testing/index.js");
  return new Set(
    contracts.flatMap((contract) =>
      testing[contract].map((/** @type {{ name: string }} */ { name }) => name),
    ),
  );
}

/**
 * What is wrong with the proofs of one row.
 *
 * @param {string} cell the last one of the row
 * @param {ReadonlySet<string>} cases what a name without a link may name
 * @param {string} without what a cell begins with that may do without proof
 * @returns {string[]}
 */
export function proofProblems(cell, cases, without) {
  const proofs = [...cell.matchAll(/`([^`]+)`(?: in \[[^\]]*\]\(([^)]+)\))?/g)];
  if (proofs.length === 0 && !cell.startsWith(without)) return ["nothing proves it"];
  return proofs.flatMap(([, name = "", file]) => {
    if (file === undefined) return cases.has(name) ? [] : [`no contract has a case "${name}"`];
    return titlesIn(file).has(name) ? [] : [`${file} has no test "${name}"`];
  });
}

/** @type {Map<string, ReadonlySet<string>>} */
const known = new Map();

/** @param {string} file as linked from a page in `docs` */
function titlesIn(file) {
  const path = join(root, "docs", file);
  const titles = known.get(path) ?? (existsSync(path) ? titlesOf(readFileSync(path, "utf8")) : new Set());
  known.set(path, titles);
  return titles;
}

/**
 * The titles of the tests in a source, as they stand there: of a template its text, placeholders included.
 *
 * @param {string} source
 * @returns {ReadonlySet<string>}
 */
export function titlesOf(source) {
  const file = ts.createSourceFile("any.test.ts", source, ts.ScriptTarget.Latest);
  /** @type {Set<string>} */
  const titles = new Set();
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (ts.isCallExpression(node) && calledName(node) === "it") {
      const [title] = node.arguments;
      if (title !== undefined && ts.isStringLiteralLike(title)) titles.add(title.text);
      if (title !== undefined && ts.isTemplateExpression(title)) titles.add(title.getText(file).slice(1, -1));
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return titles;
}

/**
 * What a call starts from: `it` for `it(…)`, `it.each(…)(…)` and `it.concurrent(…)`.
 *
 * @param {ts.Expression} call
 * @returns {string | undefined}
 */
function calledName(call) {
  if (ts.isCallExpression(call) || ts.isPropertyAccessExpression(call)) return calledName(call.expression);
  return ts.isIdentifier(call) ? call.text : undefined;
}
