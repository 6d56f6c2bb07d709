/**
 * @module scripts/vitest
 *
 * Runs vitest under a given Node and keeps what it counted, so that several runs can be summed without reading text.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { cache, root, run } from "./workspace.mjs";

export const resultsFolder = join(cache, "test-results");

/**
 * @param {{ label: string, node?: string, args?: readonly string[], env?: Record<string, string> }} options `label` names the
 *   run's file of results; two runs of one label replace each other
 * @returns {Promise<number>} vitest's exit code
 */
export async function runVitest({ label, node = process.execPath, args = [], env = {} }) {
  const reporters = [
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${join(resultsFolder, `${label}.json`)}`,
  ];
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const { code } = await run(node, [vitest, "run", ...reporters, ...args], { env });
  return code;
}

/**
 * Sums all runs whose results are kept.
 *
 * @returns {Promise<{ passed: number, failed: number, skipped: number }>} a file that broke before its first test counts as one
 *   failed test
 */
export async function countTests() {
  const sum = { passed: 0, failed: 0, skipped: 0 };
  const files = await readdir(resultsFolder).catch(() => []);
  for (const file of files) {
    /** @type {VitestResults} */
    const results = JSON.parse(await readFile(join(resultsFolder, file), "utf8"));
    sum.passed += results.numPassedTests;
    sum.failed += results.numFailedTests;
    sum.failed += results.testResults.filter(
      (each) => each.status === "failed" && each.assertionResults.length === 0,
    ).length;
    sum.skipped += results.numPendingTests + results.numTodoTests;
  }
  return sum;
}

/**
 * @typedef {object} VitestResults
 * @property {number} numPassedTests
 * @property {number} numFailedTests
 * @property {number} numPendingTests
 * @property {number} numTodoTests
 * @property {readonly { readonly status: string, readonly assertionResults: readonly unknown[] }[]} testResults
 */
