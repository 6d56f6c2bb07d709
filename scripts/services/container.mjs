/**
 * @module scripts/services/container
 *
 * A server as a container of Docker, for machines that have an engine and none of the programs. Its ports are those of the
 * host, one to one, so that what a server says about its own address (a node of a Redis cluster) is true outside too.
 */
import { randomUUID } from "node:crypto";
import { run } from "../workspace.mjs";
import { guarded, unguarded } from "./guard.mjs";

/**
 * @param {import("./kinds.mjs").Kind} kind
 * @param {{ name: string, port: number, more: readonly number[], image: string, settings: import("./kinds.mjs").Settings, onHostNetwork: boolean }} options
 * @returns {Promise<import("./local.mjs").Host>}
 */
export async function containerHost(kind, { name, port, more, image, settings, onHostNetwork }) {
  const container = `oncekey-${name}-${randomUUID().slice(0, 8)}`;
  const where = { port, address: onHostNetwork ? "127.0.0.1" : "0.0.0.0", more };
  const network = onHostNetwork ? ["--network", "host"] : ["--publish", `127.0.0.1:${port}:${port}`];
  const told = { ...kind.container.env, ...kind.env?.(where, settings) };
  const env = Object.entries(told).flatMap(([key, value]) => ["--env", `${key}=${value}`]);
  let created = false;

  return {
    start: async () => {
      guarded({ id: container, container });
      const command = [...kind.container.program, ...kind.options(where, settings)];
      await docker(
        created
          ? ["start", container]
          : ["run", "--detach", "--name", container, ...network, ...env, image, ...command],
      );
      created = true;
    },
    stop: async (signal) => {
      await docker(["kill", "--signal", signal, container]).catch(() => {});
      await docker(["wait", container]);
    },
    pause: () => docker(["pause", container]),
    resume: () => docker(["unpause", container]),
    remove: async () => {
      await docker(["rm", "--force", "--volumes", container]);
      unguarded(container);
    },
    ended: () => undefined,
  };
}

/** @param {readonly string[]} args */
async function docker(args) {
  const { code, output } = await run("docker", args, { quiet: true });
  if (code !== 0) throw new Error(`docker ${args.join(" ")} failed:\n${output}`);
}
