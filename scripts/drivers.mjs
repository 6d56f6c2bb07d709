/**
 * @module scripts/drivers
 *
 * Makes better-sqlite3 available to the tests without making everybody who runs `npm ci` compile it.
 *
 * Version 12 is what runs on Node 20 and is compiled for its ABI, which takes some minutes; version 13 ships its binaries
 * but needs Node 22. Either is installed once per ABI below `node_modules/.cache/drivers`. A driver that can't be had fails the
 * tests that need it and says what to install: a store that was not tested must not look as if it had been.
 */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { cache, run } from "./workspace.mjs";

const drivers = join(cache, "drivers");
const nodeMajor = Number(process.versions.node.split(".")[0]);
const version = nodeMajor < 22 ? "12.6.2" : "13.2.0";
const home = join(
  drivers,
  `better-sqlite3-${version}-abi${process.versions.modules}-${process.platform}-${process.arch}`,
);

/**
 * @returns {Promise<new (path: string, options?: { readonly?: boolean, timeout?: number }) => unknown>} the constructor of
 *   better-sqlite3 for the Node that runs this
 * @throws {Error} if it could not be installed, with what to do
 */
export async function loadBetterSqlite3() {
  await prepareBetterSqlite3();
  return createRequire(join(home, "package.json"))("better-sqlite3");
}

/** Installs better-sqlite3 unless it is there. Safe to run twice at once: the second to finish is thrown away. */
export async function prepareBetterSqlite3() {
  if (existsSync(home)) return;
  await mkdir(drivers, { recursive: true });
  const attempt = await mkdtemp(join(drivers, "installing-"));
  try {
    await install(attempt);
    await rename(attempt, home).catch((error) => {
      if (!existsSync(home)) throw error;
    });
  } finally {
    await rm(attempt, { recursive: true, force: true });
  }
}

/** @param {string} folder */
async function install(folder) {
  const compiles = nodeMajor < 22;
  if (compiles) await requireCompiler();
  const how = compiles
    ? ", which compiles SQLite: this may take some minutes, once for each npm ci. The tests need it to try the SQLite store with each of its clients"
    : "";
  console.log(`installing better-sqlite3 ${version} for Node ${process.versions.node}${how} …`);
  const startedAt = performance.now();
  const manifest = {
    private: true,
    dependencies: { "better-sqlite3": version },
    allowScripts: { "better-sqlite3": true },
  };
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
  const npm = await run("npm", ["install", "--no-audit", "--no-fund", "--foreground-scripts"], {
    cwd: folder,
    env: { ...headersOfThisNode(), npm_config_workspaces: "false" },
    quiet: true,
  });
  const loads = await run(process.execPath, ["-e", `new (require("better-sqlite3"))(":memory:").close()`], {
    cwd: folder,
    quiet: true,
  });
  if (npm.code !== 0 || loads.code !== 0) {
    throw new Error(
      `better-sqlite3 ${version} could not be installed for Node ${process.versions.node}. ${howToCompile}\n` +
        `${npm.output.trim().split("\n").slice(-25).join("\n")}\n${loads.output.trim()}`,
    );
  }
  console.log(`better-sqlite3 is ready after ${Math.round((performance.now() - startedAt) / 1000)} s`);
}

const howToCompile =
  "It is compiled with make, a C++ compiler and python3 (Debian: apt-get install make g++ python3; " +
  "Fedora: dnf install make gcc-c++ python3; macOS: xcode-select --install), then run npm test again.";

/** As root on Debian what is missing is installed; anybody else is told. */
async function requireCompiler() {
  if (process.platform === "win32") return;
  const missing = await missingTools();
  if (missing.length === 0) return;
  if (process.getuid?.() === 0 && existsSync("/usr/bin/apt-get")) {
    console.log(`installing ${missing.join(", ")} with apt-get …`);
    const env = { DEBIAN_FRONTEND: "noninteractive" };
    await run("apt-get", ["update", "-qq"], { env, quiet: true });
    const apt = await run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...missing], {
      env,
      quiet: true,
    });
    if ((await missingTools()).length === 0) return;
    console.error(apt.output);
  }
  throw new Error(
    `better-sqlite3 ${version} can't be compiled: no ${missing.join(", ")} here. ${howToCompile}`,
  );
}

async function missingTools() {
  const looked = await Promise.all(
    ["make", "g++", "python3"].map(async (tool) => {
      const { code } = await run("sh", ["-c", `command -v ${tool}`], { quiet: true });
      return code === 0 ? [] : [tool];
    }),
  );
  return looked.flat();
}

/**
 * A Node that brings its own headers is compiled against those, so that nothing needs to be downloaded.
 *
 * @returns {Record<string, string>}
 */
function headersOfThisNode() {
  const prefix = dirname(dirname(process.execPath));
  return existsSync(join(prefix, "include/node/node.h")) ? { npm_config_nodedir: prefix } : {};
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await prepareBetterSqlite3();
