/**
 * @module scripts/markdown
 *
 * Takes the code blocks out of a Markdown page, as modules and shell scripts with the line they came from. What is done with
 * them is decided in check-docs.
 *
 * @typedef {object} Block
 * @property {string} page the Markdown file
 * @property {number} line the line of the page on which the block's code begins
 * @property {number} lineOffset add it to a line of `text` for the line of the page
 * @property {string} file where the block is written, one folder for each page
 * @property {string} text
 * @property {boolean} runs
 *
 * @typedef {object} FencedBlock
 * @property {"block"} kind
 * @property {string} info what follows the fence: the language, then flags
 * @property {string} text
 * @property {number} line
 */

/** Other names of what is checked under the name `ts` or `sh`: a block under such a name would go unchecked. */
const unchecked = new Map([
  ["typescript", "ts"],
  ["javascript", "ts"],
  ["js", "ts"],
  ["mjs", "ts"],
  ["tsx", "ts"],
  ["bash", "sh"],
  ["shell", "sh"],
]);

/**
 * @param {string} page
 * @param {string} markdown
 * @returns {{ blocks: Block[], problems: string[] }}
 */
export function extractBlocks(page, markdown) {
  /** @type {Block[]} */
  const blocks = [];
  /** @type {string[]} */
  const problems = [];
  let setup = "";
  for (const piece of pieces(markdown)) {
    if (piece.kind === "setup") {
      setup = piece.text;
      continue;
    }
    const [language = "", ...flags] = piece.info.split(/\s+/);
    const proper = unchecked.get(language);
    if (proper !== undefined)
      problems.push(`${page}:${piece.line - 1}: fence it as \`${proper}\`, so that it is checked`);
    const runs = flags.includes("run");
    const number = String(blocks.length + 1).padStart(2, "0");
    if (language === "ts") blocks.push(moduleOf(page, piece, { setup, number, runs }));
    if (language === "sh" && runs) blocks.push(scriptOf(page, piece, number));
  }
  return { blocks, problems };
}

/**
 * @param {string} page
 * @param {FencedBlock} piece
 * @param {{ setup: string, number: string, runs: boolean }} context
 * @returns {Block}
 */
function moduleOf(page, { text, line }, { setup, number, runs }) {
  const name = /^\/\/ @file ([\w.-]+\.ts)\n/.exec(text)?.[1] ?? `${number}.ts`;
  const setupLines = setup.split("\n").length - 1;
  return {
    page,
    line,
    lineOffset: line - 1 - setupLines,
    file: `${folderOf(page)}/${name}`,
    text: `${setup}${text}\nexport {};\n`,
    runs,
  };
}

/**
 * @param {string} page
 * @param {FencedBlock} piece
 * @param {string} number
 * @returns {Block}
 */
function scriptOf(page, { text, line }, number) {
  return { page, line, lineOffset: line - 1, file: `${folderOf(page)}/${number}.sh`, text, runs: true };
}

/** @param {string} page */
function folderOf(page) {
  return page.replace(/\.md$/, "").replaceAll("/", "_");
}

/**
 * The fenced blocks and the setup comments of a page, in order. A fence may be indented, as in a list.
 *
 * @param {string} markdown
 * @returns {Generator<{ kind: "setup", text: string } | FencedBlock>}
 */
function* pieces(markdown) {
  const pattern = /^<!-- setup\b([\s\S]*?)-->|^([ \t]*)(`{3,}|~{3,})([^\n`]*)\n([\s\S]*?)^[ \t]*\3[ \t]*$/gm;
  for (const match of markdown.matchAll(pattern)) {
    const [, setup, indent = "", , info = "", text = ""] = match;
    if (setup !== undefined) {
      yield { kind: "setup", text: setup.trim() === "" ? "" : `${setup.trim()}\n` };
      continue;
    }
    const line = markdown.slice(0, match.index).split("\n").length + 1;
    yield {
      kind: "block",
      info: info.trim(),
      text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      line,
    };
  }
}
