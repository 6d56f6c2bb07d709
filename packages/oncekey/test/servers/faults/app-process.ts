/**
 * @module test/servers/faults/app-process
 *
 * The parent's side of `apps/app.mjs`: calls in another process, which can be held at a point, killed, stopped and continued.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AppSettings } from "./apps/app.mjs";
import type { CallOptions, Outcome, Point } from "./apps/caller.mjs";

interface FromApp {
  readonly ready?: boolean;
  readonly id?: number;
  readonly outcome?: Outcome;
  readonly halted?: Point;
  readonly label?: string;
}

export interface App {
  /** Never settles if the process dies first. */
  call(options: CallOptions): Promise<Outcome>;
  /** Resolves when the call of this label has got to where it halts. */
  halted(label: string): Promise<void>;
  go(label: string): void;
  kill(): Promise<void>;
  /** Stands still, as with a debugger or a machine that is swapped out, until `resume`. */
  pause(): void;
  resume(): void;
}

const appFile = fileURLToPath(new URL("apps/app.mjs", import.meta.url));

export async function startApp(settings: AppSettings): Promise<App> {
  requireFreshBuild();
  const child: ChildProcess = fork(appFile, [JSON.stringify(settings)]);
  const exited = once(child, "exit");
  let last = 0;
  const calls = new Map<number, (outcome: Outcome) => void>();
  const halts = new Map<string, () => void>();
  const kill = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  const ready = new Promise<void>((resolve) => {
    child.on("message", ({ ready: isReady, id, outcome, halted, label }: FromApp) => {
      if (isReady) resolve();
      if (id !== undefined && outcome !== undefined) calls.get(id)?.(outcome);
      if (halted !== undefined && label !== undefined) halts.get(label)?.();
    });
  });
  const died = exited.then(() => Promise.reject(new Error(`${settings.name} ended before it was ready`)));
  died.catch(() => {});
  await Promise.race([ready, died]);

  return {
    call(options) {
      last += 1;
      const id = last;
      child.send({ id, call: options }, maybeDead);
      return new Promise((resolve) => calls.set(id, resolve));
    },
    halted: (label) => new Promise((resolve) => halts.set(label, resolve)),
    go: (label) => void child.send({ go: label }, maybeDead),
    kill,
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
  };
}

/** Killing is what these processes are for: what is sent to a dead one gets no answer, which is all that there is to say. */
function maybeDead(): void {}

let checked = false;

/** The other processes run the built package: an old one would prove something about yesterday. */
export function requireFreshBuild(): void {
  if (checked) return;
  const library = fileURLToPath(new URL("../../..", import.meta.url));
  const source = join(library, "src");
  const sources = readdirSync(source, { recursive: true, encoding: "utf8" });
  const files = sources.filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));
  const changedAtMs = Math.max(...files.map((name) => statSync(join(source, name)).mtimeMs));
  const build = join(library, "dist/build.tsbuildinfo");
  if (!existsSync(build) || statSync(build).mtimeMs < changedAtMs) {
    throw new Error(
      "The other processes run the built package, which is older than its source: npm run build",
    );
  }
  checked = true;
}
