/**
 * @module
 * How the contract of jobs starts instances: in processes of their own, of one scheduler, on one store.
 */
import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { JOB_LEASE_MS, type JobInstance, type JobLine, type JobSubject } from "oncekey/testing";
import { requireFreshBuild } from "../servers/faults/app-process.js";
import type { StoreName } from "../servers/faults/apps/stores.mjs";
import type { InstanceSettings } from "./workers/job-instance.mjs";
import type { SchedulerName } from "./workers/schedulers.mjs";

const file = fileURLToPath(new URL("workers/job-instance.mjs", import.meta.url));

/** Cases of one file that run at a time: each has up to five processes. */
const MOST_AT_A_TIME = 5;
let running = 0;
const inLine: (() => void)[] = [];

/** Resolves when it is this case's turn; what it resolves to ends it. */
async function turn(): Promise<() => void> {
  if (running >= MOST_AT_A_TIME) await new Promise<void>((resolve) => inLine.push(resolve));
  else running += 1;
  return () => {
    const next = inLine.shift();
    if (next === undefined) running -= 1;
    else next();
  };
}

/** @param address of a database, whose other jobs have other names; of SQLite, made in a folder of the case's own. */
export async function openJobSubject(
  scheduler: SchedulerName,
  storeName: StoreName,
  address?: string,
): Promise<JobSubject> {
  requireFreshBuild();
  const over = await turn();
  const folder = mkdtempSync(join(tmpdir(), "oncekey-jobs-"));
  const logPath = join(folder, "log");
  const job = `tick-${randomUUID().slice(0, 8)}`;
  const instances: JobInstance[] = [];
  return {
    async start(options) {
      const name = `i${instances.length + 1}`;
      const settings: InstanceSettings = {
        ...{ name, job, scheduler, storeName, logPath, options },
        address: address ?? join(folder, "jobs.db"),
        leaseMs: JOB_LEASE_MS,
      };
      const { instance, ready } = begin(settings);
      instances.push(instance);
      await ready;
      return instance;
    },
    log: () => linesOf(logPath),
    async dispose() {
      await Promise.all(instances.map((instance) => instance.kill()));
      rmSync(folder, { recursive: true, force: true });
      over();
    },
  };
}

function begin(settings: InstanceSettings): {
  readonly instance: JobInstance;
  readonly ready: Promise<unknown>;
} {
  const child: ChildProcess = fork(file, [JSON.stringify(settings)]);
  const exited = once(child, "exit");
  const heard = async (wanted: string): Promise<void> => {
    const gone = exited.then(() => {
      throw new Error(`${settings.name} ended before it said: ${wanted}`);
    });
    gone.catch(() => undefined);
    for (;;) {
      const [message] = await Promise.race([once(child, "message"), gone]);
      if (JSON.stringify(message).includes(wanted)) return;
    }
  };
  const ask = (what: "cut-off" | "reconnect") => {
    const answer = heard(what);
    child.send(what);
    return answer;
  };
  const instance: JobInstance = {
    name: settings.name,
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
    cutOff: () => ask("cut-off"),
    reconnect: () => ask("reconnect"),
  };
  return { instance, ready: heard("ready") };
}

/** A line that is being written is not there yet. */
function linesOf(path: string): readonly JobLine[] {
  if (!existsSync(path)) return [];
  const whole = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return whole.map((line) => JSON.parse(line) as JobLine);
}
