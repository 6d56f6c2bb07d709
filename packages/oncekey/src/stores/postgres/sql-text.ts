/**
 * @module
 * Finding transaction control in the text of a statement.
 *
 * The transaction belongs to the store: a COMMIT of the work's own would make rows permanent without the completion, and the
 * work would run again on top of them. Invariant: words inside strings, quoted names and comments are not mistaken for
 * statements. What slips through all the same is noticed by `transaction.ts`, before its own COMMIT.
 */
import { configurationError } from "../../core/errors.js";

/** A comment, a quoted piece (dollar quotes included), a semicolon, or a word. */
const PIECE =
  /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|\$(\w*)\$[\s\S]*?(?:\$\1\$|$)|e'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|;|[a-z_]\w*|[^\s\w;]/gi;

const ENDS: ReadonlySet<string> = new Set([
  "BEGIN",
  "START",
  "COMMIT",
  "END",
  "ABORT",
  "PREPARE TRANSACTION",
]);

/** @throws OncekeyError `CONFIGURATION_INVALID` if `sql` would end the transaction or begin another; it has not run then. */
export function checkedSql(sql: string): void {
  const control = transactionControl(sql);
  if (control === undefined) return;
  throw configurationError("The statement", [
    `${control} is not allowed: the store ends the transaction together with its record. To give up, throw`,
  ]);
}

/** The first statement of `sql` that would end the transaction or begin another, as its leading words. */
export function transactionControl(sql: string): string | undefined {
  for (const [first = "", second = "", third = ""] of leadingWords(sql)) {
    if (ENDS.has(first)) return first;
    if (ENDS.has(`${first} ${second}`)) return `${first} ${second}`;
    const isBackToSavepoint = second === "TO" || third === "TO";
    if (first === "ROLLBACK" && !isBackToSavepoint) return first;
  }
  return undefined;
}

function leadingWords(sql: string): readonly (readonly string[])[] {
  const statements: string[][] = [[]];
  for (const [piece] of sql.matchAll(PIECE)) {
    if (piece.startsWith("--") || piece.startsWith("/*")) continue;
    if (piece === ";") statements.push([]);
    else statements.at(-1)?.push(piece.toUpperCase());
  }
  return statements.map((words) => words.slice(0, 3));
}
