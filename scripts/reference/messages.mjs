/**
 * @module scripts/reference/messages
 *
 * What the package can say: its texts and templates, found in the sources. An example in the documentation that says something
 * else is out of date.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { library } from "../workspace.mjs";
import { readSource } from "./pages.mjs";

/** A shorter text is a word of some kind, and no sentence; a template with less of its own would fit anything. */
const LEAST_LENGTH = 12;

/** @returns {(text: string) => boolean} whether the package can say it */
export function sayable() {
  const sources = readdirSync(join(library, "src"), { recursive: true, encoding: "utf8" }).filter(
    (file) => /\.ts$/.test(file) && !/\.test\.ts$/.test(file),
  );
  const patterns = sources.flatMap(patternsOf);
  return (text) => patterns.some((pattern) => pattern.test(text));
}

/** @param {string} file */
function patternsOf(file) {
  const source = ts.createSourceFile(file, readSource(file), ts.ScriptTarget.Latest);
  /** @type {RegExp[]} */
  const patterns = [];
  /** @param {ts.Node} node */
  const visit = (node) => {
    const parts = partsOf(node);
    if (parts !== undefined && parts.join("").length >= LEAST_LENGTH)
      patterns.push(new RegExp(`^${parts.map(escaped).join(".*")}$`));
    ts.forEachChild(node, visit);
  };
  visit(source);
  return patterns;
}

/**
 * The fixed parts of a text or a template.
 *
 * @param {ts.Node} node
 * @returns {string[] | undefined}
 */
function partsOf(node) {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (!ts.isTemplateExpression(node)) return undefined;
  return [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)];
}

/** @param {string} text */
function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
