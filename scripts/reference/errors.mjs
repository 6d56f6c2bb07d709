/**
 * @module scripts/reference/errors
 *
 * Every error code has a page under `docs/errors/`, at the address that its problem documents link to; title, facts and
 * example on it are those of the catalogue, and the example says what the package says. `docs/errors/README.md` lists them all.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../workspace.mjs";
import { sayable } from "./messages.mjs";
import { importBuilt } from "./pages.mjs";

const folder = join(root, "docs/errors");
const isSaid = sayable();
const sections = ["What happened", "What the client should do", "What the operator should do", "Example"];

/**
 * @typedef {object} Facts
 * @property {number} status
 * @property {number} businessCode
 * @property {boolean} retryable
 * @property {string} title
 */

/**
 * @param {{ write: boolean }} options
 * @returns {Promise<string[]>}
 */
export async function checkErrorPages({ write }) {
  const { CODES, docsOf } = await importBuilt("core/errors.js");
  /** @type {[string, Facts][]} */
  const codes = Object.entries(CODES);
  const problems = codes.flatMap(([code, facts]) => checkPage(code, facts, docsOf(code), write));
  const known = new Set(["README.md", ...codes.map(([code]) => fileOf(code))]);
  for (const file of readdirSync(folder)) {
    if (!known.has(file)) problems.push(`docs/errors/${file} is about a code that does not exist`);
  }
  return [...problems, ...checkIndex(codes, write)];
}

/** @param {string} code */
function fileOf(code) {
  return `${code.toLowerCase().replaceAll("_", "-")}.md`;
}

/**
 * @param {string} code
 * @param {Facts} facts
 * @param {string} type the address that problem documents give
 * @param {boolean} write
 * @returns {string[]}
 */
function checkPage(code, facts, type, write) {
  const page = `docs/errors/${fileOf(code)}`;
  if (!existsSync(join(root, page))) return [`${code} has no page: write ${page}`];
  if (!type.endsWith(`/${fileOf(code).replace(/\.md$/, "")}`))
    return [`${code} links to ${type}, and its page is ${page}`];
  let text = readFileSync(join(root, page), "utf8");
  const current = `# \`${code}\`: ${lowered(facts.title)}\n\n<!-- facts -->\n${factsOf(facts, type)}\n<!-- /facts -->`;
  const head = /^# [^\n]*\n\n<!-- facts -->\n[\s\S]*?<!-- \/facts -->/;
  if (write && head.test(text)) {
    text = text.replace(head, current.replaceAll("$", "$$$$"));
    writeFileSync(join(root, page), text);
  }
  const problems = [];
  if (!text.startsWith(current))
    problems.push(
      `${page}: title or facts differ from the catalogue; run node scripts/check-reference.mjs --write`,
    );
  for (const section of sections) {
    if (!text.includes(`\n## ${section}\n`)) problems.push(`${page} has no section "${section}"`);
  }
  return [...problems, ...checkExample(page, text, { code, type, ...facts })];
}

/**
 * @param {Facts} facts
 * @param {string} type
 */
function factsOf({ status, businessCode, retryable }, type) {
  const again = retryable ? "yes; over HTTP with `Retry-After`" : "no";
  return `| HTTP status | \`businessCode\` | \`retryable\` | \`type\` |\n| --- | --- | --- | --- |\n| ${status} | ${businessCode} | ${again} | <${type}> |`;
}

/** @param {string} title */
function lowered(title) {
  return title.charAt(0).toLowerCase() + title.slice(1);
}

/**
 * The example is a problem document, or, for what is thrown in the process only, code.
 *
 * @param {string} page
 * @param {string} text
 * @param {Facts & { code: string, type: string }} facts
 * @returns {string[]}
 */
function checkExample(page, text, facts) {
  const [, json] = /^```json\n([\s\S]*?)^```/m.exec(text) ?? [];
  if (json === undefined) return /^```ts\b/m.test(text) ? [] : [`${page} has no example`];
  const document = JSON.parse(json);
  const problems = Object.entries(facts)
    .filter(([name, value]) => document[name] !== value)
    .map(([name, value]) => `${page}: the example's ${name} is not ${JSON.stringify(value)}`);
  if (!isSaid(document.detail)) problems.push(`${page}: nothing says what is the example's detail`);
  return problems;
}

/**
 * @param {[string, Facts][]} codes
 * @param {boolean} write
 * @returns {string[]}
 */
function checkIndex(codes, write) {
  const file = join(folder, "README.md");
  const rows = codes.map(([code, { status, businessCode, retryable, title }]) => {
    const link = `[\`${code}\`](${fileOf(code)})`;
    return `| ${link} | ${status} | ${businessCode} | ${retryable ? "yes" : "no"} | ${lowered(title)} |`;
  });
  const table = `| code | status | \`businessCode\` | \`retryable\` | |\n| --- | --- | --- | --- | --- |\n${rows.join("\n")}`;
  const wanted = `<!-- codes -->\n${table}\n<!-- /codes -->`;
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  if (text.includes(wanted)) return [];
  const pattern = /<!-- codes -->\n[\s\S]*?<!-- \/codes -->/;
  if (write && pattern.test(text)) {
    writeFileSync(file, text.replace(pattern, wanted.replaceAll("$", "$$$$")));
    return [];
  }
  return ["docs/errors/README.md differs from the catalogue; run node scripts/check-reference.mjs --write"];
}
