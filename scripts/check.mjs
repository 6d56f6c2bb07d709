/**
 * @module scripts/check
 *
 * Runs every `check:…` script of package.json, also after one has failed, and prints one line for each.
 * What a failed check said follows its line.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./workspace.mjs";

/** @type {{ scripts: Record<string, string> }} */
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const checks = Object.keys(manifest.scripts).filter((name) => name.startsWith("check:"));
const width = Math.max(...checks.map((name) => name.length));

const build = await run("npm", ["run", "--silent", "build"], { quiet: true });
if (build.code !== 0)
  console.log(`build failed, so what looks at the built package will too\n${build.output}`);

let failed = 0;
for (const name of checks) {
  const startedAt = performance.now();
  const { code, output } = await run("npm", ["run", "--silent", name], { quiet: true });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${code === 0 ? "ok    " : "FAILED"}  ${name.padEnd(width)}  ${seconds.padStart(5)} s`);
  if (code === 0) continue;
  failed += 1;
  console.log(output.trimEnd().replace(/^/gm, "        "));
}

console.log(
  failed === 0 ? `\nall ${checks.length} checks are clean` : `\n${failed} of ${checks.length} checks failed`,
);
process.exitCode = failed === 0 ? 0 : 1;
