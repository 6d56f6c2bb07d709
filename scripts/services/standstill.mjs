/**
 * @module scripts/services/standstill
 *
 * Waits until processes that were sent SIGSTOP really stand still. The signal is only a request: on a busy machine a thread that runs on
 * another core goes on for some time, and may still answer.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { run } from "../workspace.mjs";

const patienceMs = 10_000;

/** @param {readonly number[]} pids */
export async function untilStopped(pids) {
  const endsAt = performance.now() + patienceMs;
  for (const pid of pids) {
    while (!(await standsStill(pid))) {
      if (performance.now() > endsAt) throw new Error(`process ${pid} was sent SIGSTOP and goes on`);
      await sleep(1);
    }
  }
}

/** @param {number} pid */
async function standsStill(pid) {
  if (existsSync("/proc/self/stat")) return threadStates(pid).every((state) => "TtZX".includes(state));
  const { output } = await run("ps", ["-o", "state=", "-p", String(pid)], { quiet: true });
  return !/^\s*[^TZ\s]/.test(output);
}

/**
 * @param {number} pid
 * @returns {readonly string[]} none if it has ended
 */
function threadStates(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) => {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8");
      // The name stands in brackets and may hold anything.
      return stat.charAt(stat.lastIndexOf(")") + 2);
    });
  } catch {
    return existsSync(`/proc/${pid}`) ? ["R"] : [];
  }
}
