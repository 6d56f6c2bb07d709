/**
 * @module scripts/check-reference
 *
 * Compares what the reference pages state as facts with the built package: a page for each error code, a row for each
 * option, event and label, a proof for each line of the tables of standards and of faults, and a target for each link.
 *
 * `--write` brings the generated parts up to date: the facts of the error pages, and their index. What stands there in
 * prose is written by hand and never touched.
 */
import { checkErrorPages } from "./reference/errors.mjs";
import { checkEventTables } from "./reference/events.mjs";
import { checkFaultTable } from "./reference/faults.mjs";
import { checkLinks } from "./reference/links.mjs";
import { checkOptionTables } from "./reference/options.mjs";
import { checkSpecTable } from "./reference/spec.mjs";
import { report } from "./workspace.mjs";

const write = process.argv.includes("--write");
const problems = [
  ...(await checkErrorPages({ write })),
  ...(await checkOptionTables()),
  ...checkEventTables(),
  ...(await checkSpecTable()),
  ...(await checkFaultTable()),
  ...(await checkLinks()),
];
report("reference pages", problems);
