/**
 * @module scripts/check-reference
 *
 * Compares what the reference pages state as facts with the built package: a page for each error code, a row for each
 * option, event and label, a proof for each line of the tables of standards, of faults and of comparison, and a target for each link.
 *
 * `--write` brings the generated parts up to date: the facts of the error pages, and their index. What stands there in
 * prose is written by hand and never touched.
 */
import { checkErrorPages } from "./reference/errors.mjs";
import { checkEventTables } from "./reference/events.mjs";
import { checkFaultNumbers } from "./reference/faults.mjs";
import { checkLinks } from "./reference/links.mjs";
import { checkOptionTables } from "./reference/options.mjs";
import { checkProofs } from "./reference/proofs.mjs";
import { report } from "./workspace.mjs";

const write = process.argv.includes("--write");
const problems = [
  ...(await checkErrorPages({ write })),
  ...(await checkOptionTables()),
  ...checkEventTables(),
  // A line that binds clients, or the service's own documentation, says so.
  ...(await checkProofs("docs/spec-compliance.md", ["httpContract"], "By ")),
  ...(await checkProofs(
    "docs/field-faults.md",
    ["storeContract", "httpContract", "jobContract", "consumerContract"],
    "Not built yet",
  )),
  ...(await checkProofs("docs/comparison.md", ["storeContract", "httpContract"], "See ")),
  ...checkFaultNumbers(),
  ...(await checkLinks()),
];
report("reference pages", problems);
