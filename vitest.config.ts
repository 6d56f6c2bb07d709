/**
 * Tests run against the sources, so that a stack trace names the line one edits. With `ONCEKEY_TEST_TARGET=dist` what
 * they import as `oncekey` is the built package instead: that is how other versions of Node are tested.
 *
 * The embedded project needs nothing but this machine. The other one starts the servers that its files ask for.
 */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const library = fileURLToPath(new URL("packages/oncekey/", import.meta.url));

interface Manifest {
  readonly exports: Readonly<Record<string, { readonly default: string }>>;
}

/** Every subpath of the export map, and `#platform`, resolved to the source that its built file comes from. */
function sources(): { find: RegExp; replacement: string }[] {
  const manifest: Manifest = JSON.parse(readFileSync(`${library}package.json`, "utf8"));
  const subpaths = Object.entries(manifest.exports).map(([subpath, target]) => ({
    find: new RegExp(`^oncekey${subpath.slice(1)}$`),
    replacement: library + target.default.replace("./dist/", "src/").replace(/\.js$/, ".ts"),
  }));
  return [{ find: /^#platform$/, replacement: `${library}src/platform/node.ts` }, ...subpaths];
}

export default defineConfig({
  resolve: { alias: process.env.ONCEKEY_TEST_TARGET === "dist" ? [] : sources() },
  test: {
    pool: "forks",
    // Most of the long ones wait for leases rather than compute, so that one worker would leave a small machine idle.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: 20_000,
    hookTimeout: 20_000,
    teardownTimeout: 10_000,
    allowOnly: false,
    // Expected errors are logged by design (a handler that throws, an error page); only a failure is worth reading.
    silent: "passed-only",
    restoreMocks: true,
    projects: [
      {
        extends: true,
        test: {
          name: "embedded",
          include: ["packages/*/{src,test}/**/*.test.ts", "scripts/*.test.mjs"],
          exclude: ["**/test/servers/**"],
        },
      },
      {
        extends: true,
        test: {
          name: "servers",
          include: ["packages/*/test/servers/**/*.test.ts"],
          globalSetup: "packages/oncekey/test/servers/support/global-setup.ts",
          // The fault proofs wait for leases most of the time, many at once.
          maxConcurrency: 12,
          // A fault proof waits through several leases; on a busy machine its processes also start slowly.
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
