/**
 * @module
 * The consumers as their parent sees them: processes that are started, and killed without a warning.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface ConsumerProcess {
  readonly name: string;
  /** SIGKILL. Resolves when it is gone. */
  kill(): Promise<void>;
}

const script = fileURLToPath(new URL("consumer.js", import.meta.url));

/** Resolves when it listens. */
export async function startConsumer(name: string, args: readonly string[]): Promise<ConsumerProcess> {
  const child = fork(script, [name, ...args]);
  const ended = once(child, "exit");
  const failed = ended.then(() => {
    throw new Error(`consumer ${name} ended before it listened`);
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
