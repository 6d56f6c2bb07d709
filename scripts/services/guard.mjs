/**
 * @module scripts/services/guard
 *
 * Ends what a process has started when that process is gone, however it went.
 *
 * `guarded` tells a small second process what to end; a pipe between the two closes when the first one ends, also by SIGKILL, and
 * the second then does the work. It knows process ids and container names that it was told, and touches nothing else.
 */
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/**
 * @typedef {object} Guarded
 * @property {string} id
 * @property {number} [pid]
 * @property {NodeJS.Signals} [signal] what ends the process without leaving anything behind
 * @property {string} [container]
 * @property {string} [folder] removed at the end
 */

/** @type {import("node:child_process").ChildProcess | undefined} */
let guard;

/**
 * From now on this is ended with the present process. Called again with the same `id` it replaces what was said before.
 *
 * @param {Guarded} guarded
 */
export function guarded(guarded) {
  tell({ keep: guarded });
}

/** @param {string} id */
export function unguarded(id) {
  tell({ drop: id });
}

/** @param {{ keep: Guarded } | { drop: string }} message */
function tell(message) {
  guard ??= startGuard();
  guard.stdin?.write(`${JSON.stringify(message)}\n`);
}

/** In a process group of its own, so that Ctrl-C ends the tests and not what cleans up after them. */
function startGuard() {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url)], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.unref();
  const { stdin } = child;
  stdin?.on("error", () => {});
  if (stdin !== null && "unref" in stdin && typeof stdin.unref === "function") stdin.unref();
  return child;
}

/** The second process: remembers until the pipe ends, then ends what is left. */
async function watch() {
  /** @type {Map<string, Guarded>} */
  const left = new Map();
  for await (const line of createInterface({ input: process.stdin })) {
    /** @type {{ keep?: Guarded, drop?: string }} */
    const { keep, drop } = JSON.parse(line);
    if (keep) left.set(keep.id, keep);
    if (drop) left.delete(drop);
  }
  await Promise.all([...left.values()].map(end));
}

/** @param {Guarded} guarded */
async function end({ pid, signal = "SIGKILL", container, folder }) {
  if (pid !== undefined && send(pid, signal)) {
    send(pid, "SIGCONT");
    for (let waited = 0; waited < 8_000 && runs(pid); waited += 50) await sleep(50);
    send(pid, "SIGKILL");
  }
  if (container !== undefined) spawnSync("docker", ["rm", "--force", "--volumes", container]);
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/**
 * A process that has ended keeps its id until its parent asks, and its new parent may never ask.
 *
 * @param {number} pid
 */
function runs(pid) {
  if (!send(pid, 0)) return false;
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return send(pid, 0);
  }
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals | 0} signal
 */
function send(pid, signal) {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await watch();
