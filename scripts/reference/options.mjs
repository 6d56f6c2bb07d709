/**
 * @module scripts/reference/options
 *
 * `docs/policy.md` has a row for every option of a policy, of an HTTP route, of an instance and of its limits, and no other;
 * the default in it is the one that the option's own comment names. A duration's comment is compared with the constant.
 */
import ts from "typescript";
import { codeSpans, importBuilt, readPage, readSource, tableRows } from "./pages.mjs";

const page = "docs/policy.md";
/** Which interfaces each section of the page is about. */
const interfaces = [
  { file: "core/policy.ts", name: "Policy" },
  { file: "http/options.ts", name: "HttpOptions" },
  { file: "http/problem.ts", name: "ProblemOptions" },
  { file: "core/idempotency.ts", name: "IdempotencyOptions" },
];

/** @returns {Promise<string[]>} */
export async function checkOptionTables() {
  const { DURATIONS } = await importBuilt("core/policy.js");
  /** @type {{ DEFAULT_LIMITS: Record<string, number> }} */
  const { DEFAULT_LIMITS } = /** @type {any} */ (await importBuilt("core/limits.js"));
  const options = new Map(interfaces.flatMap(({ file, name }) => [...membersOf(file, name)]));
  const rows = defaultsByOption();
  const unknown = [...rows.keys()].filter((name) => !options.has(name) && !(name in DEFAULT_LIMITS));
  return [
    ...[...options].flatMap(([name, documented]) =>
      optionProblems(name, documented, rows.get(name), DURATIONS[name]),
    ),
    ...Object.entries(DEFAULT_LIMITS).flatMap(([name, value]) => limitProblems(name, value, rows.get(name))),
    ...unknown.map((name) => `${page} has a row for ${name}, which is no option`),
  ];
}

/** What the page's tables give as the default of each option. */
function defaultsByOption() {
  /** @type {Map<string, string>} */
  const rows = new Map();
  for (const [option = "", preset = ""] of tableRows(readPage(page))) {
    const [name] = codeSpans(option);
    if (name !== undefined) rows.set(name, preset);
  }
  return rows;
}

/**
 * @param {string} name
 * @param {string | undefined} documented the default as the option's comment has it
 * @param {string | undefined} row the default as the page has it
 * @param {number | undefined} constant the default as the code has it, of a duration
 * @returns {string[]}
 */
function optionProblems(name, documented, row, constant) {
  if (row === undefined) return [`${page} has no row for the option ${name}`];
  const problems = [];
  if (documented !== undefined && plain(row) !== plain(documented))
    problems.push(
      `${page}: the default of ${name} is "${documented}" in its comment, and "${row}" in the table`,
    );
  if (constant !== undefined && numberIn(documented) !== constant)
    problems.push(`the comment of ${name} says ${documented}, and its default is ${constant}`);
  return problems;
}

/**
 * @param {string} name
 * @param {number} value
 * @param {string | undefined} row
 * @returns {string[]}
 */
function limitProblems(name, value, row) {
  if (row === undefined) return [`${page} has no row for the limit ${name}`];
  return numberIn(row) === value ? [] : [`${page}: the limit ${name} is ${value}, and "${row}" in the table`];
}

/**
 * The members of an interface, with what their comments name as their default.
 *
 * @param {string} file
 * @param {string} name
 * @returns {Map<string, string | undefined>}
 */
function membersOf(file, name) {
  const source = ts.createSourceFile(file, readSource(file), ts.ScriptTarget.Latest, true);
  /** @type {Map<string, string | undefined>} */
  const members = new Map();
  for (const statement of source.statements) {
    if (!ts.isInterfaceDeclaration(statement) || statement.name.text !== name) continue;
    for (const member of statement.members) {
      if (member.name === undefined) continue;
      const tag = ts.getJSDocTags(member).find((each) => each.tagName.text === "defaultValue");
      members.set(member.name.getText(source), tag && ts.getTextOfJSDocComment(tag.comment)?.trim());
    }
  }
  if (members.size === 0) throw new Error(`There is no interface ${name} in ${file}`);
  return members;
}

/**
 * Code marks and spaces within numbers do not count.
 *
 * @param {string} text
 */
function plain(text) {
  return text
    .replaceAll("`", "")
    .replaceAll(/(?<=\d)[ _,](?=\d{3})/g, "")
    .replaceAll(/\s+/g, " ")
    .trim();
}

/**
 * @param {string | undefined} text such as `30 000` or `1 MiB`
 */
function numberIn(text) {
  const [, digits, unit] = /(\d+)\s*(MiB|KiB)?/.exec(plain(text ?? "")) ?? [];
  const factor = unit === undefined ? 1 : { KiB: 1024, MiB: 1024 ** 2 }[unit];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}
