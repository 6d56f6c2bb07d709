/**
 * @module scripts/services/local
 *
 * A server as a process of this machine, with a folder of its own below the system's temporary one.
 * It signals the process that it started and the children of that process, by id.
 */
import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from "node:fs";
import { chown, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../workspace.mjs";
import { guarded, unguarded } from "./guard.mjs";
import { untilStopped } from "./standstill.mjs";

/**
 * What starts, signals and removes one server; `container.mjs` is the other kind.
 *
 * @typedef {object} Host
 * @property {() => Promise<void>} start resolves when the process runs, not when it answers
 * @property {(signal: NodeJS.Signals) => Promise<void>} stop resolves when the process is gone
 * @property {() => Promise<void>} pause
 * @property {() => Promise<void>} resume
 * @property {() => Promise<void>} remove
 * @property {() => string | undefined} ended why it does not run any more, if it doesn't
 */

/**
 * @param {import("./kinds.mjs").Kind} kind
 * @param {{ name: string, port: number, more: readonly number[], programs: readonly string[], settings: import("./kinds.mjs").Settings }} options
 * @returns {Promise<Host>}
 */
export async function localHost(kind, { name, port, more, programs, settings }) {
  const folder = await mkdtemp(join(tmpdir(), `oncekey-${name}-`));
  const id = folder;
  guarded({ id, folder });
  const place = { folder, programs };
  const account = await accountFor(kind);
  if (account !== undefined) await chown(folder, account.uid, account.gid);
  await prepare(kind, place, account);
  const where = { port, address: "127.0.0.1", more };
  const env = kind.env?.(where, settings, place) ?? {};
  const companion = companionOf(kind, { where, place, id, account });

  /** @type {import("node:child_process").ChildProcess | undefined} */
  let child;
  const pid = () => {
    if (child?.pid === undefined) throw new Error(`${name} does not run`);
    return child.pid;
  };
  const runs = () => child !== undefined && child.exitCode === null && child.signalCode === null;
  const log = join(folder, "log");

  return {
    start: async () => {
      companion.start();
      const command = [...kind.program(place), ...kind.options(where, settings)];
      child = launch(command, { log, folder, account, env });
      guarded({ id, folder, pid: pid(), signal: kind.lastly });
      child.unref();
    },
    stop: async (signal) => {
      const stopping = child;
      if (stopping === undefined || !runs()) return;
      const gone = new Promise((resolve) => stopping.once("exit", resolve));
      stopping.ref();
      process.kill(pid(), signal);
      const late = setTimeout(() => stopping.kill("SIGKILL"), 20_000);
      await gone;
      clearTimeout(late);
      guarded({ id, folder });
    },
    pause: async () => {
      const pids = [pid(), ...(await childrenOf(pid()))];
      signalAll(pids, "SIGSTOP");
      await untilStopped(pids);
    },
    resume: async () => signalAll([...(await childrenOf(pid())), pid()], "SIGCONT"),
    remove: async () => {
      await companion.end();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
      unguarded(id);
    },
    ended: () => (runs() ? undefined : `it ended (${endOf(child)}):\n${lastLines(log)}`),
  };
}

/**
 * @param {import("./kinds.mjs").Kind} kind
 * @param {import("./kinds.mjs").Place} place
 * @param {Account | undefined} account
 */
async function prepare(kind, place, account) {
  const command = kind.preparation(place);
  if (command === undefined) return;
  const log = join(place.folder, "preparation");
  const child = launch(command, { log, folder: place.folder, account, env: {} });
  const code = await new Promise((resolve, reject) => child.once("exit", resolve).once("error", reject));
  if (code !== 0) throw new Error(`${command[0]} failed with ${code}:\n${lastLines(log)}`);
}

/**
 * Detached, so that Ctrl-C reaches who stops the server in its order, and not the server.
 *
 * @param {readonly string[]} command
 * @param {{ log: string, folder: string, account: Account | undefined, env: NodeJS.ProcessEnv }} options
 */
function launch([program = "", ...args], { log, folder, account, env }) {
  const output = openSync(log, "a");
  const child = spawn(program, args, {
    cwd: folder,
    // A temporary folder of its own: servers that begin at the same time meet in a shared one (MariaDB's temporary tables do).
    env: { ...process.env, LC_ALL: "C", HOME: folder, TMPDIR: folder, ...env },
    stdio: ["ignore", output, output],
    detached: true,
    ...account,
  });
  closeSync(output);
  child.on("error", () => {});
  return child;
}

/**
 * Runs from the first start of its server until that one is removed, also while the server is stopped.
 *
 * @param {import("./kinds.mjs").Kind} kind
 * @param {{ where: import("./kinds.mjs").Listening, place: import("./kinds.mjs").Place, id: string, account: Account | undefined }} options
 */
function companionOf(kind, { where, place, id, account }) {
  const command = kind.companion?.(where, place);
  const ownId = `${id} companion`;
  /** @type {import("node:child_process").ChildProcess | undefined} */
  let child;
  return {
    start() {
      if (command === undefined || child !== undefined) return;
      const { folder } = place;
      child = launch(command, { log: join(folder, "companion"), folder, account, env: {} });
      if (child.pid !== undefined) guarded({ id: ownId, pid: child.pid, signal: "SIGKILL" });
      child.unref();
    },
    async end() {
      const ending = child;
      if (ending === undefined || ending.pid === undefined) return;
      const gone = new Promise((resolve) => ending.once("exit", resolve));
      ending.ref();
      if (ending.exitCode === null && ending.signalCode === null) {
        ending.kill("SIGKILL");
        await gone;
      }
      unguarded(ownId);
    },
  };
}

/** @typedef {{ uid: number, gid: number }} Account */

/**
 * Database servers refuse to run as root.
 *
 * @param {import("./kinds.mjs").Kind} kind
 * @returns {Promise<Account | undefined>}
 */
async function accountFor({ accounts }) {
  if (process.getuid?.() !== 0 || accounts.length === 0) return undefined;
  const lines = (await readFile("/etc/passwd", "utf8")).split("\n").map((line) => line.split(":"));
  for (const name of accounts) {
    const entry = lines.find(([each]) => each === name);
    if (entry) return { uid: Number(entry[2]), gid: Number(entry[3]) };
  }
  throw new Error(`a server that refuses to run as root needs one of the accounts ${accounts.join(", ")}`);
}

/**
 * Postgres gives each connection a process with a session of its own, so that a signal to the group does not reach it.
 *
 * @param {number} parent
 * @returns {Promise<number[]>}
 */
async function childrenOf(parent) {
  const pairs = existsSync("/proc/self/stat") ? parentsFromProc() : await parentsFromPs();
  return pairs.filter(([, of]) => of === parent).map(([pid]) => pid);
}

/** @returns {[pid: number, parent: number][]} */
function parentsFromProc() {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      // The name of a program stands in brackets and may hold anything.
      return [[Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1])]];
    } catch {
      return [];
    }
  });
}

/** @returns {Promise<[pid: number, parent: number][]>} */
async function parentsFromPs() {
  const { output } = await run("ps", ["-A", "-o", "pid=,ppid="], { quiet: true });
  return output.split("\n").map((line) => {
    const [pid, parent] = line.trim().split(/\s+/);
    return [Number(pid), Number(parent)];
  });
}

/**
 * @param {readonly number[]} pids
 * @param {NodeJS.Signals} signal
 */
function signalAll(pids, signal) {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It ended between being listed and being signalled.
    }
  }
}

/** @param {import("node:child_process").ChildProcess | undefined} child */
function endOf(child) {
  return child === undefined ? "never started" : (child.signalCode ?? `exit code ${child.exitCode}`);
}

/** @param {string} log */
function lastLines(log) {
  return existsSync(log) ? readFileSync(log, "utf8").trim().split("\n").slice(-40).join("\n") : "";
}
