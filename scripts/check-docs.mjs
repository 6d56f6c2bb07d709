/**
 * @module scripts/check-docs
 *
 * What the documentation shows is compiled against the built package, and what it says can be run is run.
 *
 * | in Markdown | what happens to it |
 * | --- | --- |
 * | a block fenced as `ts` | is type-checked as a module of its own |
 * | `ts run` | is also run; it fails by throwing, so use `node:assert` to say what holds |
 * | `sh run` | is run by `bash -euo pipefail` in the folder of its page's modules |
 * | `<!-- setup … -->`, invisible to the reader | its lines stand before each `ts` block that follows, until the next setup |
 * | `// @file name.ts` as a block's first line | names the module, so that later blocks can import `./name.js` |
 *
 * Errors are reported with the line of the Markdown file.
 */
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { extractBlocks } from "./markdown.mjs";
import { report, root, run } from "./workspace.mjs";

const work = join(root, ".docs-check");

/** @type {string[]} */
const problems = [];
const pages = await trackedPages();
const blocks = (await Promise.all(pages.map(readBlocks))).flat();

await rm(work, { recursive: true, force: true });
await writeModules();
await typeCheck();
if (problems.length === 0) for (const block of blocks.filter(({ runs }) => runs)) await execute(block);
const ran = blocks.filter(({ runs }) => runs).length;
report(`blocks of the documentation (${blocks.length} compiled, ${ran} of them run)`, problems);
if (problems.length === 0) await rm(work, { recursive: true, force: true });

async function trackedPages() {
  const args = [
    "ls-files",
    "--cached",
    "--others",
    "--exclude-standard",
    "README.md",
    "ARCHITECTURE.md",
    "docs",
    "packages",
    "examples",
  ];
  const { output } = await run("git", args, { quiet: true });
  return [...new Set(output.split("\n"))].filter(
    (file) => file.endsWith(".md") && existsSync(join(root, file)) && !/CHANGELOG/.test(file),
  );
}

/** @param {string} page */
async function readBlocks(page) {
  const { blocks: found, problems: wrong } = extractBlocks(page, await readFile(join(root, page), "utf8"));
  problems.push(...wrong);
  return found;
}

async function writeModules() {
  await mkdir(work, { recursive: true });
  await writeFile(join(work, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const tsconfig = {
    extends: "../tsconfig.base.json",
    compilerOptions: {
      rootDir: ".",
      outDir: "out",
      noUnusedLocals: false,
      noUnusedParameters: false,
      skipLibCheck: false,
    },
    include: ["**/*.ts"],
  };
  await writeFile(join(work, "tsconfig.json"), JSON.stringify(tsconfig));
  for (const { file, text } of blocks) {
    await mkdir(dirname(join(work, file)), { recursive: true });
    await writeFile(join(work, file), text);
  }
}

async function typeCheck() {
  const modules = blocks.filter(({ file }) => file.endsWith(".ts"));
  if (modules.length === 0) return;
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { code, output } = await run(process.execPath, [tsc, "-p", work, "--pretty", "false"], {
    quiet: true,
    cwd: work,
  });
  if (code === 0) return;
  for (const message of output.trim().split(/\n(?=\S)/))
    if (!isForeign(message)) problems.push(locate(message));
}

/** What other packages declare is theirs: some of it needs the types of a browser, or of their own tools. */
function isForeign(/** @type {string} */ message) {
  return message.startsWith("../node_modules/");
}

/**
 * Moves a compiler's message from the module that was written to the block it came from.
 *
 * @param {string} message such as `docs_retries/03.ts(5,3): error TS2322: …`
 */
function locate(message) {
  const [, file, line, rest] = /^(.+?)\((\d+),\d+\): ([\s\S]+)$/.exec(message) ?? [];
  const block = blocks.find((each) => each.file === file);
  if (block === undefined || rest === undefined) return message;
  return `${block.page}:${Number(line) + block.lineOffset}: ${rest}`;
}

/** @param {import("./markdown.mjs").Block} block */
async function execute(block) {
  const cwd = join(work, dirname(block.file));
  const script = block.file.endsWith(".ts");
  const { code, output } = script
    ? await run(process.execPath, [join(work, "out", block.file.replace(/\.ts$/, ".js"))], {
        cwd,
        quiet: true,
        timeoutMs: 120_000,
      })
    : await run("bash", ["-euo", "pipefail", join(work, block.file)], {
        cwd,
        quiet: true,
        timeoutMs: 120_000,
      });
  if (code === 0) return;
  const said = output
    .split("\n")
    .filter((line) => line.trim() !== "" && !/^\s+at |^node:internal|^Node\.js v/.test(line));
  problems.push(
    `${block.page}:${block.line}: the block ended with exit code ${code}\n  ${said.join("\n  ")}`,
  );
}
