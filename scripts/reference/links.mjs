/**
 * @module scripts/reference/links
 *
 * Every relative link of a tracked page leads to a file of the repository, and its fragment to a heading there. Every
 * source that a page names (`core/perform.ts`) exists.
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
  return pages.flatMap((page) => [...checkPage(page), ...checkSources(page)]);
}

/**
 * @param {string} page
 * @returns {string[]}
 */
function checkPage(page) {
  const problems = [];
  for (const [, target = ""] of withoutBlocks(readPage(page)).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue;
    const [path = "", fragment] = target.split("#");
    const file = path === "" ? page : normalize(join(dirname(page), path));
    if (!existsSync(join(root, file))) problems.push(`${page} links to ${target}, which does not exist`);
    else if (fragment !== undefined && !anchorsOf(file).has(fragment))
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
