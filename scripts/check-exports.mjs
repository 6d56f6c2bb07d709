/**
 * @module scripts/check-exports
 *
 * A subpath is a promise in four places, and this keeps them in step: the source file, the entry of the export map, the
 * page in `docs/`, and, for a store or an HTTP adapter, the test that binds it to its contract.
 *
 * Whether a source is public needs no list: a file that no other source imports is either exported or dead.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { library, libraryManifest, report, root, sourceOf } from "./workspace.mjs";

const contracts = {
  stores: "bindStoreContract",
  http: "httpContract",
  jobs: "bindJobContract",
  consumers: "bindConsumerContract",
};
/** Brokers that nobody can start here: their adapters are tested with what the broker documents that it hands over. */
const withoutServer = ["./consumers/sqs"];
const platformSources = ["platform/node.ts", "platform/web.ts"];

/** @type {string[]} */
const problems = [];
const manifest = libraryManifest();
const subpaths = Object.entries(manifest.exports).map(([subpath, { default: target }]) => ({
  subpath,
  name: `${manifest.name}${subpath.slice(1)}`,
  source: sourceOf(target),
}));

checkSources();
checkShape();
checkPages();
checkBindings();
report(`subpaths (${subpaths.length})`, problems);

/** Every export has a source, and every source is reached from an export. */
function checkSources() {
  const sources = filesBelow(join(library, "src"), /(?<!\.test)\.ts$/);
  for (const { subpath, source } of subpaths) {
    if (sources.includes(source)) continue;
    problems.push(
      `exports "${subpath}" of packages/oncekey/package.json points to src/${source}, which does not exist`,
    );
  }
  const imported = new Set(sources.flatMap((source) => importsOf(join(library, "src"), source)));
  const entries = new Set([...platformSources, ...subpaths.map(({ source }) => source)]);
  for (const source of sources) {
    if (imported.has(source) || entries.has(source)) continue;
    problems.push(`src/${source} is imported by nobody and exported by no subpath: export it, or delete it`);
  }
}

/** The three ways to find a subpath (source path, `types` and `typesVersions`) agree. */
function checkShape() {
  for (const { subpath, source } of subpaths) {
    const folder = subpath === "." ? "index" : subpath.slice(2);
    if (source !== `${folder}.ts` && source !== `${folder}/index.ts`) {
      problems.push(
        `exports "${subpath}" points to src/${source}: a subpath is its folder or file, src/${folder}`,
      );
    }
    const { types, default: target } = manifest.exports[subpath] ?? { types: "", default: "" };
    if (types !== target.replace(/\.js$/, ".d.ts")) {
      problems.push(`exports "${subpath}": "types" (${types}) does not belong to "default" (${target})`);
    }
    const older = typesForOlderResolution(subpath.slice(2));
    if (subpath !== "." && older !== types) {
      problems.push(`typesVersions leads "${subpath}" to ${older ?? "nothing"}, and exports to ${types}`);
    }
  }
}

/**
 * Where `moduleResolution: node10` finds the types of a subpath, since it does not read `exports`.
 *
 * @param {string} subpath without `./`
 */
function typesForOlderResolution(subpath) {
  for (const [pattern, [target = ""] = []] of Object.entries(manifest.typesVersions["*"])) {
    if (pattern === subpath) return target;
    const prefix = pattern.endsWith("*") ? pattern.slice(0, -1) : undefined;
    if (prefix && subpath.startsWith(prefix)) return target.replace("*", subpath.slice(prefix.length));
  }
  return undefined;
}

/** Every subpath has a page that names it, and every page below a family's folder has a subpath. */
function checkPages() {
  for (const { subpath, name } of subpaths) {
    const candidates =
      subpath === "." ? ["README.md"] : [`docs/${subpath.slice(2)}.md`, `docs/${subpath.slice(2)}/README.md`];
    const page = candidates.find((candidate) => existsSync(join(root, candidate)));
    if (page === undefined) problems.push(`"${name}" has no page: write ${candidates[0]}`);
    else if (!readFileSync(join(root, page), "utf8").includes(`"${name}"`)) {
      problems.push(`${page} never imports "${name}", the subpath it is about`);
    }
  }
  for (const family of Object.keys(contracts)) {
    for (const page of filesBelow(join(root, "docs", family), /\.md$/)) {
      const subpath = `./${family}/${page.replace(/\.md$/, "")}`;
      if (page === "README.md" || manifest.exports[subpath]) continue;
      problems.push(`docs/${family}/${page} is about a subpath "${subpath}" that is not exported`);
    }
  }
}

/** Every store and every adapter runs its contract in a test. */
function checkBindings() {
  const tests = ["src", "test"].flatMap((folder) =>
    filesBelow(join(library, folder), /\.test\.ts$/).map((file) => ({
      text: readFileSync(join(library, folder, file), "utf8"),
      imports: importsOf(join(library, folder), file).map((path) => resolve(library, folder, path)),
    })),
  );
  for (const { subpath, name, source } of subpaths) {
    const contract = Object.entries(contracts).find(([family]) => subpath.startsWith(`./${family}/`))?.[1];
    if (contract === undefined || withoutServer.includes(subpath)) continue;
    const bound = tests.some(
      ({ text, imports }) =>
        new RegExp(`\\b${contract}\\b`).test(text) &&
        (text.includes(`"${name}"`) || imports.includes(join(library, "src", source))),
    );
    if (!bound)
      problems.push(`"${name}" runs no contract: write a test that imports it and runs ${contract}`);
  }
}

/**
 * @param {string} folder
 * @param {RegExp} pattern
 * @returns {string[]} relative to the folder, with forward slashes; none if there is no such folder
 */
function filesBelow(folder, pattern) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => pattern.test(file));
}

/**
 * @param {string} folder
 * @param {string} file
 * @returns {string[]} the `.ts` files that it imports by a relative path, relative to the folder
 */
function importsOf(folder, file) {
  const text = readFileSync(join(folder, file), "utf8");
  return [...text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.{1,2}\/[^"]+)\.js"/g)].map(([, path]) =>
    relative(folder, resolve(folder, dirname(file), `${path}.ts`)),
  );
}
