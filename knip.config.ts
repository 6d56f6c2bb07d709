/**
 * Dead code: files, exports and dependencies that nothing reaches from an entry of the export map, a test, a script, an example
 * or a benchmark.
 */
import { readFileSync } from "node:fs";
import type { KnipConfig } from "knip";

const manifest: { readonly exports: Readonly<Record<string, { readonly default: string }>> } = JSON.parse(
  readFileSync(new URL("packages/oncekey/package.json", import.meta.url), "utf8"),
);

/** The export map names built files; dead code is looked for in the sources they come from. */
const publicSources = Object.values(manifest.exports).map(({ default: target }) =>
  target.replace("./dist/", "src/").replace(/\.js$/, ".ts"),
);

const config: KnipConfig = {
  workspaces: {
    ".": {
      entry: ["scripts/*.mjs"],
      project: ["scripts/**", "*.config.ts"],
    },
    "packages/oncekey": {
      entry: [...publicSources, "src/platform/{node,web}.ts", "{src,test}/**/*.test.ts"],
      project: ["{src,test}/**/*.ts"],
    },
    "examples/*": {
      entry: ["src/**/*.{ts,mjs}"],
    },
    bench: {
      entry: ["**/*.bench.{ts,mjs}"],
    },
  },
};

export default config;
