/**
 * @module scripts/reference/pages
 *
 * Reading what a page says: its tables, its code blocks and its headings.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { library, root } from "../workspace.mjs";

/** @param {string} page relative to the repository */
export function readPage(page) {
  return readFileSync(join(root, page), "utf8");
}

/** @param {string} file relative to the library's `src` */
export function readSource(file) {
  return readFileSync(join(library, "src", file), "utf8");
}

/**
 * A module of the built package, also one that is not exported.
 *
 * @param {string} file relative to `dist`
 * @returns {Promise<Record<string, any>>}
 */
export function importBuilt(file) {
  return import(new URL(`../../packages/oncekey/dist/${file}`, import.meta.url).href);
}

/**
 * The rows of every table of a page, without their heads, each as its cells. A `\|` stays within its cell.
 *
 * @param {string} markdown
 * @returns {string[][]}
 */
export function tableRows(markdown) {
  const lines = withoutBlocks(markdown).split("\n");
  return lines.flatMap((line, index) => {
    const isRow = line.startsWith("|") && !isRule(line) && !isRule(lines[index + 1] ?? "");
    if (!isRow) return [];
    const cells = line
      .replace(/^\|/, "")
      .replace(/\|\s*$/, "")
      .split(/(?<!\\)\|/);
    return [cells.map((cell) => cell.trim().replaceAll("\\|", "|"))];
  });
}

/** @param {string} line */
function isRule(line) {
  return /^\|[\s:|-]+\|\s*$/.test(line);
}

/** @param {string} markdown */
export function withoutBlocks(markdown) {
  return markdown.replace(/^<!-- setup\b[\s\S]*?-->/gm, "").replace(/^(`{3,})[\s\S]*?^\1\s*$/gm, "");
}

/**
 * What stands in code spans.
 *
 * @param {string} text
 */
export function codeSpans(text) {
  return [...text.matchAll(/(`+)(?:\s?)(.+?)(?:\s?)\1(?!`)/g)].map(([, , span = ""]) => span);
}
