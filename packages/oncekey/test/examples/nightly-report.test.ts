/**
 * The demo of `examples/nightly-report`, as a reader runs it: four real processes, real SIGKILL, and an exit code that can be trusted.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";

const workspace = fileURLToPath(new URL("../../../../", import.meta.url));
const BUILD_MS = 120_000;
const PLAY_MS = 180_000;

function node(...args: string[]): Promise<{ readonly code: number; readonly output: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, { cwd: workspace }, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, output: stdout + stderr });
    });
  });
}

const demo = (...args: string[]) => node("examples/nightly-report/dist/demo.js", ...args);

describe.concurrent("examples/nightly-report", () => {
  beforeAll(async () => {
    const tsc = "node_modules/typescript/bin/tsc";
    const build = await node(tsc, "-b", "examples/nightly-report", "--pretty", "false");
    expect(build.output).toBe("");
  }, BUILD_MS);

  it("sends every report once, over a crash and an outage", { timeout: PLAY_MS }, async () => {
    const { code, output } = await demo();
    expect(output).toMatch(/^instance \d+ was killed in the middle of the report/m);
    expect(output).toMatch(/^\d\d:\d\d:\d\d {3}\d+, \d+ +\d+ +✓$/m);
    expect(output).toMatch(/^Every count is right: (\d+) reports were planned, \1 were sent\.$/m);
    expect(code).toBe(0);
  });

  it("fails without oncekey", { timeout: PLAY_MS }, async () => {
    const { code, output } = await demo("--without-oncekey");
    expect(output).toMatch(/^\d+ of \d+ counts are wrong/m);
    expect(code).toBe(1);
  });
});
