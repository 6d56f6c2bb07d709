/**
 * @module scripts/reference/events
 *
 * `docs/operating.md` has a row for every event and for every label of the counter, and no other.
 */
import { codeSpans, readPage, readSource, tableRows } from "./pages.mjs";

const page = "docs/operating.md";

/** @returns {string[]} */
export function checkEventTables() {
  const source = readSource("core/events.ts");
  const [, labels = ""] = /export type CallOutcome =([\s\S]*?);/.exec(source) ?? [];
  const [, events = ""] = /export type IdempotencyEvent =([\s\S]*?)\n\n/.exec(source) ?? [];
  const names = [
    ...[...labels.matchAll(/"([a-z_]+)"/g)].map(([, label = ""]) => label),
    ...[...events.matchAll(/readonly type: "([a-z-]+)"/g)].map(([, type = ""]) => type),
  ];
  if (names.length < 20) throw new Error("core/events.ts does not read as expected");
  const text = readPage(page);
  const rows = ["## Events", "## The counter"].flatMap((section) =>
    tableRows(sectionOf(text, section)).map(([first = ""]) => codeSpans(first)[0]),
  );
  return [
    ...names.filter((name) => !rows.includes(name)).map((name) => `${page} has no row for ${name}`),
    ...rows
      .filter((name) => name !== undefined && !names.includes(name))
      .map((name) => `${page} has a row for ${name}, which is no event and no label`),
  ];
}

/**
 * @param {string} text
 * @param {string} heading
 */
function sectionOf(text, heading) {
  const start = text.indexOf(`\n${heading}\n`);
  if (start === -1) throw new Error(`${page} has no section "${heading}"`);
  const end = text.indexOf("\n## ", start + 1);
  return text.slice(start, end === -1 ? undefined : end);
}
