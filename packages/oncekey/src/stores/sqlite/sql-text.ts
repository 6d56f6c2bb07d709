/**
 * @module
 * Finding transaction control in the text of a statement.
 *
 * The transaction belongs to the store: a COMMIT of the work's own would make rows permanent without the
 * completion, and the work would run again on top of them. Invariant: words inside strings, quoted names,
 * comments and the bodies of triggers are not mistaken for statements. What slips through all the same is
 * noticed by `transaction.ts`, at the latest before its own COMMIT.
 */

import { configurationError } from "../../core/errors.js";
import type { SqliteValue } from "./driver.js";

/** A comment, a quoted piece, or a word; what is between them does not matter. */
const PIECE =
  /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|;|[a-z_]\w*|[^\s\w;]/gi;

/**
 * @param most how many statements it may be: some clients run the first and drop the others without a word.
 * @throws OncekeyError `CONFIGURATION_INVALID` if `sql` is more, or would end the transaction; it has not run then.
 */
export function checkedSql(sql: string, most = Number.POSITIVE_INFINITY): void {
  const control = transactionControl(sql);
  if (control !== undefined) {
    throw configurationError("The statement", [
      `${control} is not allowed: the store ends the transaction together with its record. To give up, throw`,
    ]);
  }
  const count = statementsOf(sql).filter((words) => words.length > 0).length;
  if (count > most) {
    throw configurationError("The statement", [`there are ${count} of them: use exec, or one call for each`]);
  }
}

/**
 * Values that SQLite can hold. Not left to the client: some store `NaN` as `NULL`, and one ends the process
 * when it meets a boolean.
 */
export function checkedParams(params: readonly SqliteValue[] = []): readonly SqliteValue[] {
  for (const [index, value] of params.entries()) {
    const fits =
      value === null ||
      typeof value === "string" ||
      typeof value === "bigint" ||
      (typeof value === "number" && !Number.isNaN(value)) ||
      (value as unknown) instanceof Uint8Array;
    if (fits) continue;
    const kind = typeof value === "number" ? "NaN" : typeof value;
    throw new TypeError(
      `Parameter ${index + 1} is ${kind}; SQLite holds text, numbers, bigints, bytes (Uint8Array) and null`,
    );
  }
  return params;
}

/** The first statement of `sql` that would end the transaction or begin another, as its leading words. */
export function transactionControl(sql: string): string | undefined {
  for (const words of statementsOf(sql)) {
    const [first, second, third] = words;
    switch (first) {
      case "BEGIN":
      case "COMMIT":
      case "END":
        return first;
      case "ROLLBACK":
        // Back to a savepoint of the work's own is its own affair.
        if (second === "TO" || (second === "TRANSACTION" && third === "TO")) break;
        return first;
      default:
        break;
    }
  }
  return undefined;
}

/** The leading words of each statement, in capitals. The body of a trigger is part of its statement. */
function statementsOf(sql: string): readonly (readonly string[])[] {
  const statements: string[][] = [];
  let words: string[] = [];
  /** Open blocks of a trigger's body: its own BEGIN, and CASE, both closed by END. */
  let depth = 0;
  for (const piece of piecesOf(sql)) {
    if (piece === ";" && depth === 0) {
      statements.push(words);
      words = [];
    } else if (words.length < LEADING_WORDS) {
      words.push(piece);
    } else if (words[0] === "CREATE" && words.includes("TRIGGER")) {
      depth += depthOf(piece);
    }
  }
  return [...statements, words];
}

/** `CREATE TEMP TRIGGER`: what is looked for stands among the first three. */
const LEADING_WORDS = 3;

function depthOf(piece: string): number {
  if (piece === "BEGIN" || piece === "CASE") return 1;
  return piece === "END" ? -1 : 0;
}

function piecesOf(sql: string): readonly string[] {
  const pieces = sql.match(PIECE) ?? [];
  return pieces
    .filter((piece) => !piece.startsWith("--") && !piece.startsWith("/*"))
    .map((piece) => piece.toUpperCase());
}
