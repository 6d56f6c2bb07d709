/**
 * What each subpath costs whoever imports it: minified, with all that it brings along, compressed with Brotli.
 *
 * A budget is what was measured plus about a tenth. Raise one only with a sentence in the commit on what the bytes buy.
 */
import { readFileSync } from "node:fs";

const manifest = JSON.parse(readFileSync(new URL("packages/oncekey/package.json", import.meta.url), "utf8"));

/** Subpath to kilobytes. */
const budgets = {
  ".": 12,
  "./http": 23,
  "./http/express": 20,
  "./http/fastify": 24,
  "./http/fetch": 20,
  "./http/hono": 20,
  "./http/node": 20,
  "./presets": 2,
  "./stores/memory": 6,
  "./stores/sqlite": 15,
  "./testing": 20,
};

/** A subpath without a budget is measured against nothing, so it fails. */
const subpaths = Object.entries(manifest.exports).map(([subpath, { default: target }]) => ({
  name: `oncekey${subpath.slice(1)}`,
  path: `packages/oncekey/${target.slice(2)}`,
  limit: `${budgets[subpath] ?? 0} kB`,
  modifyEsbuildConfig: (config) => ({ ...config, platform: "node" }),
}));

/** Where there is no Node, the hash is code of ours to carry. */
const web = {
  name: "oncekey, in a browser or a worker",
  path: "packages/oncekey/dist/index.js",
  limit: "16 kB",
};

export default [...subpaths, web];
