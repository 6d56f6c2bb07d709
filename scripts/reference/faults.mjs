/**
 * @module scripts/reference/faults
 *
 * Of the faults in `docs/field-faults.md`, which others refer to by their numbers, none is missing and none is there twice.
 */
import { readPage, tableRows } from "./pages.mjs";

const page = "docs/field-faults.md";

/** @returns {string[]} */
export function checkFaultNumbers() {
  const numbers = tableRows(readPage(page))
    .map(([number]) => Number(number))
    .toSorted((a, b) => a - b);
  const wrong = numbers.find((number, index) => number !== index + 1);
  return wrong === undefined ? [] : [`${page}: the numbers do not count on at ${wrong}`];
}
