/**
 * @module scripts/reference/links
 *
 * Every relative link of a tracked page leads to a file of the repository, and its fragment to a heading there. Every
 * source that a page names (`core/perform.ts`) exists. Every page can be reached from `docs/index.md`.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { library, root, run } from "../workspace.mjs";
import { codeSpans, readPage, withoutBlocks } from "./pages.mjs";

/** @returns {Promise<string[]>} */
export async function checkLinks() {
  const { output } = await run("git", ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"], {
    quiet: true,
  });
  const pages = [...new Set(output.split("\n"))].filter(
    (page) => page !== "" && existsSync(join(root, page)),
  );
  const reached = reachedFrom("docs/index.md");
  return [
    ...pages.flatMap((page) => [...checkPage(page), ...checkSources(page)]),
    ...pages
      .filter((page) => !reached.has(page))
      .map((page) => `no link leads from docs/index.md to ${page}`),
  ];
}

/**
 * The pages that links lead to, over any number of pages.
 *
 * @param {string} page
 * @param {Set<string>} reached
 */
function reachedFrom(page, reached = new Set()) {
  reached.add(page);
  for (const { path } of linksOf(page)) {
    if (path.endsWith(".md") && existsSync(join(root, path)) && !reached.has(path))
      reachedFrom(path, reached);
  }
  return reached;
}

/**
 * The relative links of a page, as they stand there and as paths of the repository.
 *
 * @param {string} page
 */
function linksOf(page) {
  const links = [...withoutBlocks(readPage(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(
    ([, target = ""]) => target,
  );
  return links
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path = "", fragment] = target.split("#");
      return { target, fragment, path: path === "" ? page : normalize(join(dirname(page), path)) };
    });
}

/**
 * @param {string} page
 * @returns {string[]}
 */
function checkPage(page) {
  const problems = [];
  for (const { target, path, fragment } of linksOf(page)) {
    if (!existsSync(join(root, path))) problems.push(`${page} links to ${target}, which does not exist`);
    else if (fragment !== undefined && !anchorsOf(path).has(fragment))
      problems.push(`${page} links to ${target}, where no heading has that name`);
  }
  return problems;
}

/**
 * @param {string} page
 * @returns {string[]}
 */
function checkSources(page) {
  return codeSpans(withoutBlocks(readPage(page)))
    .filter((span) => /^(?:core|http|stores|testing|presets)\/[\w/-]+\.ts$/.test(span))
    .filter((source) => !existsSync(join(library, "src", source)))
    .map((source) => `${page} names src/${source}, which does not exist`);
}

/**
 * The names that GitHub gives to the headings of a page.
 *
 * @param {string} file
 * @returns {Set<string>}
 */
function anchorsOf(file) {
  if (!file.endsWith(".md") || statSync(join(root, file)).isDirectory()) return new Set();
  const text = withoutBlocks(readFileSync(join(root, file), "utf8"));
  const names = [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
  return new Set(names);
}
