/**
 * @module
 * Finding what would end the transaction in the text of a statement.
 *
 * The transaction belongs to the store: a COMMIT of the work's own, or a statement before which MySQL commits by itself
 * (every change of a table's definition), would make rows permanent without the completion, and the work would run again
 * on top of them. Invariant: words inside strings, quoted names and comments are not mistaken for statements. What slips
 * through all the same (a stored procedure) is noticed before the store's own COMMIT.
 */
import { configurationError } from "../../core/errors.js";

/** A comment, a quoted piece, or a word. What an executable comment (`/*! … *\/`) holds is text like any other. */
const PIECE =
  /--[ \t\n][^\n]*|#[^\n]*|\/\*(?!M?!)[\s\S]*?(?:\*\/|$)|'(?:[^'\\]|\\[\s\S]|'')*'|"(?:[^"\\]|\\[\s\S]|"")*"|`(?:[^`]|``)*`|\/\*M?!\d*|;|[a-z_]\w*/gi;

/** Before each of these MySQL commits. */
const COMMITS_FIRST: ReadonlySet<string> = new Set([
  "ALTER",
  "ANALYZE",
  "BEGIN",
  "CHANGE",
  "COMMIT",
  "CREATE",
  "DROP",
  "FLUSH",
  "GRANT",
  "INSTALL",
  "LOCK",
  "OPTIMIZE",
  "RENAME",
  "REPAIR",
  "REVOKE",
  "ROLLBACK",
  "START",
  "TRUNCATE",
  "UNINSTALL",
  "UNLOCK",
  "XA",
]);

/** These leave the transaction as it is, whatever they fire. */
const PLAIN: ReadonlySet<string> = new Set([
  "DELETE",
  "INSERT",
  "REPLACE",
  "SELECT",
  "TABLE",
  "UPDATE",
  "VALUES",
  "WITH",
]);

/**
 * @returns whether it is sure to leave the transaction open; a procedure, say, may commit.
 * @throws OncekeyError `CONFIGURATION_INVALID` if `sql` would end the transaction; it has not run then.
 */
export function checkedSql(sql: string): boolean {
  const control = transactionControl(sql);
  if (control === undefined)
    return statementsOf(sql).every(([first]) => first === undefined || PLAIN.has(first));
  throw configurationError("The statement", [
    `${control} is not allowed: it would commit without the record, which the store does at the end. To give up, throw`,
  ]);
}

/** The first statement of `sql` that would end the transaction, by its leading word. */
export function transactionControl(sql: string): string | undefined {
  for (const words of statementsOf(sql)) {
    const [first = ""] = words;
    if (COMMITS_FIRST.has(first) && !isHarmless(words)) return first;
    if (first === "SET" && words.includes("AUTOCOMMIT")) return "SET autocommit";
  }
  return undefined;
}

/** Back to a savepoint of the work's own, or a table that only this connection has. */
function isHarmless([first, ...others]: readonly string[]): boolean {
  if (first === "ROLLBACK") return others.includes("TO");
  return (first === "CREATE" || first === "DROP") && others.includes("TEMPORARY");
}

/** `CREATE OR REPLACE TEMPORARY`, `SET SESSION autocommit`: what is looked for stands among the first. */
const LEADING_WORDS = 4;

/** The leading words of each statement, in capitals. */
function statementsOf(sql: string): readonly (readonly string[])[] {
  const statements: string[][] = [];
  let words: string[] = [];
  for (const piece of sql.match(PIECE) ?? []) {
    if (piece === ";") {
      statements.push(words);
      words = [];
    } else if (words.length < LEADING_WORDS && /^[a-z_]/i.test(piece)) {
      words.push(piece.toUpperCase());
    }
  }
  return [...statements, words];
}
