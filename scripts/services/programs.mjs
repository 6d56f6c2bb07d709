/**
 * @module scripts/services/programs
 *
 * Finds the programs of a server, in this order: on this machine, in a container, installed by apt as root. What can't be had
 * is an error that says what to install: tests of a store whose server is missing have failed.
 */
import { accessSync, constants, existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { run } from "../workspace.mjs";

/**
 * @typedef {object} Needs
 * @property {string} name as people say it
 * @property {readonly (readonly string[])[]} programs sets of programs, by name or by path; the first set that is complete is used
 * @property {string} image
 * @property {readonly string[]} packages of Debian and its descendants
 * @property {string} brew
 *
 * @typedef {{ kind: "local", programs: readonly string[] } | { kind: "docker", image: string }} Found `programs` are paths, in the
 *   order of the set
 */

/** @type {Map<string, Promise<Found>>} */
const lookups = new Map();

/**
 * @param {Needs} needs
 * @returns {Promise<Found>}
 */
export function findPrograms(needs) {
  let found = lookups.get(needs.name);
  if (found === undefined) {
    found = look(needs);
    lookups.set(needs.name, found);
    found.catch(() => lookups.delete(needs.name));
  }
  return found;
}

/**
 * @param {Needs} needs
 * @returns {Promise<Found>}
 */
async function look(needs) {
  const local = localPrograms(needs);
  if (local !== undefined) return local;
  if (await dockerAnswers()) return { kind: "docker", image: needs.image };
  const failure = await installing(() => installed(needs));
  const after = localPrograms(needs);
  if (after !== undefined) return after;
  throw new Error(
    `${needs.name} is needed by the tests and is not here: no ${needs.programs.map((set) => set.join(" + ")).join(", no ")} in PATH, ` +
      `and no Docker engine answers. Debian: apt-get install ${needs.packages.join(" ")}; macOS: brew install ${needs.brew}; ` +
      `or give the address of one that may be written to (CONTRIBUTING.md, "Servers").${failure}`,
  );
}

/**
 * @param {Needs} needs
 * @returns {Found | undefined}
 */
function localPrograms({ programs }) {
  const folders = [...(process.env.PATH ?? "").split(delimiter), ...usualFolders()];
  for (const set of programs) {
    const paths = set.flatMap((name) => {
      if (isAbsolute(name)) return isExecutable(name) ? [name] : [];
      const folder = folders.find((each) => each !== "" && isExecutable(join(each, name)));
      return folder === undefined ? [] : [join(folder, name)];
    });
    if (paths.length === set.length) return { kind: "local", programs: paths };
  }
  return undefined;
}

/** Debian keeps the programs of Postgres out of PATH, one folder for each version: the newest comes first. */
function usualFolders() {
  const versions = "/usr/lib/postgresql";
  const found = existsSync(versions) ? readdirSync(versions) : [];
  const newestFirst = found.sort((a, b) => Number(b) - Number(a)).map((each) => join(versions, each, "bin"));
  return [...newestFirst, "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"];
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A client without an engine is no Docker. */
async function dockerAnswers() {
  const docker = ["version", "--format", "{{.Server.Version}}"];
  const asked = await run("docker", docker, { quiet: true, timeoutMs: 5_000 }).catch(() => ({ code: 1 }));
  return asked.code === 0;
}

/** @type {Promise<unknown>} */
let lastInstallation = Promise.resolve();

/**
 * One installation at a time: apt has one lock for the machine.
 *
 * @param {() => Promise<string>} install
 * @returns {Promise<string>}
 */
function installing(install) {
  const next = lastInstallation.then(install);
  lastInstallation = next.catch(() => {});
  return next;
}

/**
 * @param {Needs} needs
 * @returns {Promise<string>} what apt said if it failed
 */
async function installed({ name, packages }) {
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) return "";
  console.log(`installing ${name} with apt-get (${packages.join(" ")}) …`);
  const undo = keepServicesDown();
  try {
    const install = ["install", "-y", "-qq", "--no-install-recommends", ...packages];
    const first = await apt(install);
    if (first.code === 0) return "";
    await apt(["update", "-qq"]);
    const second = await apt(install);
    return second.code === 0 ? "" : `\n${second.output.trim().split("\n").slice(-15).join("\n")}`;
  } finally {
    undo();
  }
}

/** @param {readonly string[]} args */
function apt(args) {
  return run("apt-get", ["-o", "DPkg::Lock::Timeout=300", ...args], {
    env: { DEBIAN_FRONTEND: "noninteractive" },
    quiet: true,
  });
}

/**
 * Packages of servers start a service on the default port unless the machine's policy forbids it. A policy that is there already is
 * somebody's decision and stays.
 *
 * @returns {() => void} takes the policy back
 */
function keepServicesDown() {
  const policy = "/usr/sbin/policy-rc.d";
  try {
    writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755, flag: "wx" });
  } catch {
    return () => {};
  }
  return () => rmSync(policy, { force: true });
}
