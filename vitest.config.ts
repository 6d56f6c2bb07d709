/**
 * Tests run against the sources, so that a stack trace names the line one edits. The built package is what
 * `npm run check` compiles the documentation against, and what the examples run.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const library = fileURLToPath(new URL("packages/oncekey/", import.meta.url));

interface Manifest {
  readonly exports: Readonly<Record<string, { readonly default: string }>>;
}

/** Every subpath of the export map, resolved to the source that its built file comes from. */
function publicSubpaths(): { find: RegExp; replacement: string }[] {
  const manifest: Manifest = JSON.parse(readFileSync(`${library}package.json`, "utf8"));
  return Object.entries(manifest.exports).map(([subpath, target]) => ({
    find: new RegExp(`^oncekey${subpath.slice(1)}$`),
    replacement: library + target.default.replace("./dist/", "src/").replace(/\.js$/, ".ts"),
  }));
}

export default defineConfig({
  resolve: {
    alias: [{ find: "#platform", replacement: `${library}src/platform/node.ts` }, ...publicSubpaths()],
  },
  test: {
    pool: "forks",
    testTimeout: 20_000,
    hookTimeout: 20_000,
    teardownTimeout: 10_000,
    allowOnly: false,
    restoreMocks: true,
    projects: [
      {
        extends: true,
        test: {
          name: "embedded",
          include: ["packages/*/{src,test}/**/*.test.ts"],
        },
      },
    ],
  },
});
