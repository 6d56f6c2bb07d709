/**
 * @module scripts/workspace
 *
 * What the scripts share: where things are, and how another program is run. A script that fails says what it found,
 * what it expected and what to do, and sets the exit code; it never throws a stack trace at the reader for a finding.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));
export const library = join(root, "packages/oncekey");
export const cache = join(root, "node_modules/.cache");

/**
 * @typedef {object} LibraryManifest
 * @property {string} name
 * @property {string} version
 * @property {Record<string, string>} dependencies
 * @property {Record<string, { types: string, default: string }>} exports
 * @property {{ "*": Record<string, string[]> }} typesVersions
 *
 * @returns {LibraryManifest}
 */
export function libraryManifest() {
  return JSON.parse(readFileSync(join(library, "package.json"), "utf8"));
}

/**
 * The source file that a built file of the library comes from.
 *
 * @param {string} target as an export map writes it, such as `./dist/http/express.js`
 * @returns {string} relative to the library's `src`, such as `http/express.ts`
 */
export function sourceOf(target) {
  return target.replace(/^\.\/dist\//, "").replace(/\.js$/, ".ts");
}

/**
 * Runs a program to its end.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: Record<string, string>, quiet?: boolean, timeoutMs?: number }} [options] `quiet`
 *   collects the output instead of showing it
 * @returns {Promise<{ code: number, output: string }>} rejects only if the program could not be started
 */
export function run(command, args, { cwd = root, env = {}, quiet = false, timeoutMs } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", quiet ? "pipe" : "inherit", quiet ? "pipe" : "inherit"],
      timeout: timeoutMs,
    });
    let output = "";
    const collect = (/** @type {Buffer} */ chunk) => {
      output += chunk.toString();
    };
    child.stdout?.on("data", collect);
    child.stderr?.on("data", collect);
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (signal) output += `\n${command} was ended by ${signal}\n`;
      resolve({ code: code ?? 1, output });
    });
  });
}

/**
 * Ends a check: prints what it found, and fails the process if it found anything.
 *
 * @param {string} subject what was looked at, for the line that says all is well
 * @param {readonly string[]} problems
 */
export function report(subject, problems) {
  if (problems.length === 0) {
    console.log(`${subject}: nothing to complain about`);
    return;
  }
  for (const problem of problems) console.error(`- ${problem}`);
  console.error(`\n${subject}: ${problems.length} ${problems.length === 1 ? "problem" : "problems"}`);
  process.exitCode = 1;
}
