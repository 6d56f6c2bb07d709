/**
 * @module scripts/bite
 *
 * Do the tests bite? Makes each known mistake in a copy of the tree, runs the test that is said to notice, and expects it to fail.
 * `npm run bite` makes them all, `npm run bite -- heartbeat` those whose name says so. The checkout itself is not touched.
 */
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import typescript from "typescript";
import { mistakes } from "./bite/mistakes.mjs";
import { report, root, run } from "./workspace.mjs";

const wanted = process.argv.slice(2).join(" ");
const chosen = mistakes.filter(({ name }) => name.includes(wanted));
const build = await run("npm", ["run", "--silent", "build"]);
if (build.code === 0) await biteAll();
else process.exitCode = build.code;

async function biteAll() {
  const copy = copyOfTree();
  /** @type {string[]} */
  const problems = [];
  try {
    problems.push(...(await failingUnharmed(copy)));
    for (const mistake of chosen) {
      const problem = await bite(copy, mistake);
      console.log(`${problem === undefined ? "noticed" : "MISSED "}  ${mistake.name}`);
      if (problem !== undefined) problems.push(`${mistake.name}: ${problem}`);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  report(`known mistakes (${chosen.length})`, problems);
}

/**
 * A test that fails anyway notices nothing.
 *
 * @param {string} copy
 */
async function failingUnharmed(copy) {
  /** @type {string[]} */
  const problems = [];
  const tests = new Map(chosen.map(({ test, only }) => [`${test} ${only ?? ""}`, { test, only }]));
  for (const [name, { test, only }] of tests) {
    const passes = await failing(copy, join("packages/oncekey", test), only);
    if (passes === undefined) problems.push(`${name} fails without any mistake`);
  }
  return problems;
}

/** Without its dependencies, which are linked: nothing in them is changed. */
function copyOfTree() {
  const copy = mkdtempSync(join(tmpdir(), "oncekey-bite-"));
  for (const path of ["package.json", "tsconfig.base.json", "vitest.config.ts", "scripts", "packages"]) {
    cpSync(join(root, path), join(copy, path), {
      recursive: true,
      filter: (source) => !source.includes("node_modules"),
      preserveTimestamps: true,
    });
  }
  for (const path of ["node_modules", "packages/oncekey/node_modules"]) {
    if (existsSync(join(root, path))) symlinkSync(join(root, path), join(copy, path));
  }
  return copy;
}

/**
 * @param {string} copy
 * @param {import("./bite/mistakes.mjs").Mistake} mistake
 * @returns {Promise<string | undefined>} what is wrong, if the test did not notice
 */
async function bite(copy, { file, find, replace, test, only }) {
  const library = join(copy, "packages/oncekey");
  const source = join(library, "src", file);
  const built = join(library, "dist", file.replace(/\.ts$/, ".js"));
  const [right, rightBuilt] = [readFileSync(source, "utf8"), readFileSync(built, "utf8")];
  if (right.split(find).length !== 2) return `${file} does not hold it once: ${find}`;
  const wrong = right.replace(find, () => replace);
  try {
    writeFileSync(source, wrong);
    // Other processes run the built package.
    writeFileSync(built, transpiled(wrong));
    utimesSync(join(library, "dist/build.tsbuildinfo"), new Date(), new Date());
    return await failing(copy, join("packages/oncekey", test), only);
  } finally {
    writeFileSync(source, right);
    writeFileSync(built, rightBuilt);
  }
}

/** @param {string} source */
function transpiled(source) {
  const { ModuleKind, ScriptTarget } = typescript;
  const compilerOptions = {
    module: ModuleKind.ESNext,
    target: ScriptTarget.ES2023,
    verbatimModuleSyntax: true,
  };
  return typescript.transpileModule(source, { compilerOptions }).outputText;
}

/**
 * A run counts as failed if a test of it did. One that could not begin has noticed nothing.
 *
 * @param {string} copy
 * @param {string} test
 * @param {string | undefined} only
 */
async function failing(copy, test, only) {
  const results = join(copy, "results.json");
  rmSync(results, { force: true });
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const args = ["run", test, "--reporter=json", `--outputFile=${results}`, ...(only ? ["-t", only] : [])];
  const { output } = await run(process.execPath, [vitest, ...args], {
    cwd: copy,
    quiet: true,
    timeoutMs: 300_000,
  });
  /** @type {{ numPassedTests: number, numFailedTests: number }} */
  let counted;
  try {
    counted = JSON.parse(readFileSync(results, "utf8"));
  } catch {
    return `${dirname(test)} gave no results:\n${output.slice(-1_000)}`;
  }
  if (counted.numFailedTests > 0) return undefined;
  return `${counted.numPassedTests} tests passed as if nothing were wrong`;
}
