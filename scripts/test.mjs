/**
 * @module scripts/test
 *
 * `npm test`: brings up what the tests need, then runs them. Arguments go to vitest: `npm test -- packages/oncekey/src/core`.
 * Each thing that tests need from outside is one line of `prepare`; a thing that can't be had is a failure, not a skip.
 */
import { rm } from "node:fs/promises";
import { prepareBetterSqlite3 } from "./drivers.mjs";
import { resultsFolder, runVitest } from "./vitest.mjs";
import { report, run } from "./workspace.mjs";

await rm(resultsFolder, { recursive: true, force: true });
process.exitCode =
  (await prepare()) ??
  (await runVitest({ label: `node-${process.versions.node}`, args: process.argv.slice(2) }));

/** @returns {Promise<number | undefined>} the exit code, if the tests can't start */
async function prepare() {
  const build = await run("npm", ["run", "--silent", "build"]);
  if (build.code !== 0) return build.code;
  try {
    await prepareBetterSqlite3();
  } catch (error) {
    report("what the tests need", [error instanceof Error ? error.message : String(error)]);
    return 1;
  }
  return undefined;
}
