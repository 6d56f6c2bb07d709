/**
 * @module
 * The instances as their parent sees them: processes that are started, and killed without a warning.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface Instance {
  readonly name: string;
  /** SIGKILL. Resolves when it is gone. */
  kill(): Promise<void>;
}

const script = fileURLToPath(new URL("instance.js", import.meta.url));

/** Resolves when its schedule is set. */
export async function startInstance(
  name: string,
  folder: string,
  mode: readonly string[],
): Promise<Instance> {
  const child = fork(script, [name, folder, ...mode]);
  const ended = once(child, "exit");
  const failed = ended.then(() => {
    throw new Error(`instance ${name} ended before it was up`);
  });
  await Promise.race([once(child, "message"), failed]);
  failed.catch(() => undefined);
  return {
    name,
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
