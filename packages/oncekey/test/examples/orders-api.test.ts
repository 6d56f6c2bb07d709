/**
 * The demo of `examples/orders-api`, as a reader runs it: real processes, real SIGKILL, and an exit code that can be trusted.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";

const workspace = fileURLToPath(new URL("../../../../", import.meta.url));
const BUILD_MS = 120_000;
const PLAY_MS = 120_000;

function node(...args: string[]): Promise<{ readonly code: number; readonly output: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, { cwd: workspace }, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, output: stdout + stderr });
    });
  });
}

const demo = (...args: string[]) => node("examples/orders-api/dist/demo/main.js", ...args);

describe.concurrent("examples/orders-api", () => {
  beforeAll(async () => {
    const build = await node(
      "node_modules/typescript/bin/tsc",
      "-b",
      "examples/orders-api",
      "--pretty",
      "false",
    );
    expect(build.output).toBe("");
  }, BUILD_MS);

  it("plays every scene, and every count is right", { timeout: PLAY_MS }, async () => {
    const { code, output } = await demo();
    expect(output).toMatch(/^0 .* 2 charges +! charged twice$/m);
    for (const number of ["1", "2", "3", "4", "5", "6", "7a", "7b", "7c", "7d"]) {
      expect(output).toMatch(new RegExp(`^${number} .* ✓ `, "m"));
    }
    expect(output).toMatch(/^Every count is right: 11 scenes/m);
    expect(code).toBe(0);
  });

  it("fails when only the provider's ledger is wrong", { timeout: PLAY_MS }, async () => {
    const { code, output } = await demo("1", "--sabotage");
    expect(output).toMatch(/^1 .* lost, then 201 replayed +2 charges.* ✗ wrong$/m);
    expect(output).toMatch(/^ +charges: 2 instead of 1$/m);
    expect(code).toBe(1);
  });

  it("fails without oncekey", { timeout: PLAY_MS }, async () => {
    const { code, output } = await demo("1", "3", "7a", "--without-oncekey");
    expect(output).toMatch(/^3 of 3 scenes went wrong/m);
    expect(code).toBe(1);
  });

  it("fails for a scene that is not there", { timeout: PLAY_MS }, async () => {
    const { code, output } = await demo("1", "8");
    expect(output).toMatch(/^There is no scene 8\./);
    expect(code).toBe(1);
  });
});
