/**
 * @module
 * Prints results as Markdown, so that what was measured can be kept as it is.
 */

export function section(title) {
  console.log(`\n## ${title}\n`);
}

export function table(head, rows) {
  console.log(`| ${head.join(" | ")} |`);
  console.log(`| ${head.map((_, index) => (index === 0 ? "---" : "---:")).join(" | ")} |`);
  for (const row of rows) console.log(`| ${row.join(" | ")} |`);
}
