/**
 * @module scripts/reference/spec
 *
 * Each line of `docs/spec-compliance.md` names the case of the HTTP contract, or the test, that proves it. A line that binds
 * clients or the service's own documentation says so, beginning with "By".
 */
import { readPage, tableRows } from "./pages.mjs";
import { contractCases, proofProblems } from "./proofs.mjs";

const page = "docs/spec-compliance.md";

/** @returns {Promise<string[]>} */
export async function checkSpecTable() {
  const cases = await contractCases(["httpContract"]);
  return tableRows(readPage(page)).flatMap((row) =>
    proofProblems(row.at(-1) ?? "", cases, "By ").map(
      (problem) => `${page}, ${row.slice(0, 2).join(" ")}: ${problem}`,
    ),
  );
}
