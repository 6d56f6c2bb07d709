/**
 * @module scripts/check-package
 *
 * Looks at the package as npm would publish it: publint and are-the-types-wrong on its shape, then every subpath is imported
 * from the unpacked tarball with nothing beside it but its two dependencies. A subpath that imports a client it was not given
 * fails here, whatever the workspace has installed.
 */
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { library, libraryManifest, report, root, run } from "./workspace.mjs";

/** @type {string[]} */
const problems = [];
const manifest = libraryManifest();
const folder = await mkdtemp(join(tmpdir(), "oncekey-package-"));
try {
  const tarball = await pack();
  await lint("publint", [library, "--strict"]);
  await lint("attw", [tarball, "--profile", "esm-only", "--no-emoji", "--format", "table-flipped"]);
  await importAlone(tarball);
} finally {
  await rm(folder, { recursive: true, force: true });
}
report("the package", problems);

async function pack() {
  const args = ["pack", "--ignore-scripts", "--json", "--pack-destination", folder];
  const { code, output } = await run("npm", args, { cwd: library, quiet: true });
  if (code !== 0) throw new Error(`npm pack failed:\n${output}`);
  return join(folder, `${manifest.name}-${manifest.version}.tgz`);
}

/**
 * @param {string} tool
 * @param {readonly string[]} args
 */
async function lint(tool, args) {
  const { code, output } = await run(join(root, "node_modules/.bin", tool), args, {
    quiet: true,
    env: { NO_COLOR: "1" },
  });
  if (code !== 0) problems.push(`${tool} says:\n${output.trim()}`);
}

/** @param {string} tarball */
async function importAlone(tarball) {
  const modules = join(folder, "node_modules");
  await mkdir(join(modules, manifest.name), { recursive: true });
  await run("tar", ["xzf", tarball, "-C", join(modules, manifest.name), "--strip-components=1"]);
  for (const dependency of Object.keys(manifest.dependencies)) {
    const link = join(modules, dependency);
    await mkdir(join(link, ".."), { recursive: true });
    await symlink(join(root, "node_modules", dependency), link, "dir");
  }
  for (const subpath of Object.keys(manifest.exports)) {
    const name = `${manifest.name}${subpath.slice(1)}`;
    const source = `await import(${JSON.stringify(name)})`;
    const { code, output } = await run(process.execPath, ["--input-type=module", "-e", source], {
      cwd: folder,
      quiet: true,
    });
    if (code !== 0) problems.push(`"${name}" can't be imported by itself:\n${output.trim()}`);
  }
}
