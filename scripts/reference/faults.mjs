/**
 * @module scripts/reference/faults
 *
 * Each line of `docs/field-faults.md` names the cases of the contracts, or the tests, that prove it; or says first that its part
 * is not built yet. No number is missing and none is given twice.
 */
import { readPage, tableRows } from "./pages.mjs";
import { contractCases, proofProblems } from "./proofs.mjs";

const page = "docs/field-faults.md";

/** @returns {Promise<string[]>} */
export async function checkFaultTable() {
  const cases = await contractCases(["storeContract", "httpContract"]);
  const rows = tableRows(readPage(page));
  const numbers = rows.map(([number]) => Number(number)).toSorted((a, b) => a - b);
  return [
    ...numbers
      .filter((number, index) => number !== index + 1)
      .slice(0, 1)
      .map((number) => `${page}: the numbers do not count on at ${number}`),
    ...rows.flatMap((row) =>
      proofProblems(row.at(-1) ?? "", cases, "Not built yet").map(
        (problem) => `${page}, ${row[0]}: ${problem}`,
      ),
    ),
  ];
}
