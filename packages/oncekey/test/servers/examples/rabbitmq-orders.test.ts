/**
 * The demo of `examples/rabbitmq-orders`, as a reader runs it: a real broker, real processes, real SIGKILL, and an exit code that can
 * be trusted.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { rabbitmqUrl } from "../support/servers.js";

const url = await rabbitmqUrl();
const workspace = fileURLToPath(new URL("../../../../../", import.meta.url));
const BUILD_MS = 120_000;
const PLAY_MS = 200_000;

function node(...args: string[]): Promise<{ readonly code: number; readonly output: string }> {
  return new Promise((resolve) => {
    const env = { ...process.env, RABBITMQ_URL: url };
    const child = execFile(process.execPath, args, { cwd: workspace, env }, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, output: stdout + stderr });
    });
  });
}

const demo = (...args: string[]) => node("examples/rabbitmq-orders/dist/demo.js", ...args);

describe("examples/rabbitmq-orders", () => {
  beforeAll(async () => {
    const tsc = "node_modules/typescript/bin/tsc";
    const build = await node(tsc, "-b", "examples/rabbitmq-orders", "--pretty", "false");
    expect(build.output).toBe("");
  }, BUILD_MS);

  it("charges every order once, whoever is killed", { timeout: PLAY_MS }, async () => {
    const { code, output } = await demo();
    expect(output).toMatch(/^120 orders in 150 messages, 6 consumers killed by SIGKILL$/m);
    expect(output).toMatch(/^Every count is right: 120 orders, 120 charges\.$/m);
    expect(code).toBe(0);
  });

  it("fails without oncekey", { timeout: PLAY_MS }, async () => {
    const { code, output } = await demo("--without-oncekey");
    expect(output).toMatch(/^The counts are wrong\.$/m);
    expect(output).toMatch(/, [1-9]\d* charged twice, /);
    expect(code).toBe(1);
  });
});
