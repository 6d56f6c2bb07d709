/**
 * @module
 * Statements in a transaction that the application holds, whichever client or query builder it belongs to.
 *
 * Invariants: values travel as text, each parameter once and in order, and every answer is one text column, so that no parser
 * and no query builder changes what is sent or read; nothing here begins or ends the transaction.
 */
import { configurationError, isOncekeyError, OncekeyError } from "../../core/errors.js";

/**
 * What is needed of the application's own transaction: `query`, as `pg` and PGlite have it, or `unsafe` of postgres.js. Any
 * query builder's transaction becomes one in a line: `{ query: (text, values) => tx.executeQuery(CompiledQuery.raw(text, values)) }`.
 */
export type CallerTransaction =
  | {
      query(text: string, values: (string | null)[]): PromiseLike<{ readonly rows: readonly unknown[] }>;
    }
  | { unsafe(text: string, values: (string | null)[]): PromiseLike<readonly unknown[]> };

/** Runs a statement whose rows have one column, `answer`. */
export type AskCaller = (text: string, values?: (string | null)[]) => Promise<readonly string[]>;

/** @throws OncekeyError `CONFIGURATION_INVALID` if it has neither method. */
export function callerOf(transaction: CallerTransaction): AskCaller {
  const send = senderOf(transaction);
  return async (text, values = []) => {
    let rows: readonly unknown[];
    try {
      rows = await send(text, values);
    } catch (error) {
      throw meaningOf(error);
    }
    return rows.map((row) => {
      const answer: unknown = (row as { readonly answer?: unknown } | null)?.answer;
      if (typeof answer === "string") return answer;
      throw configurationError("The transaction", ["its query must give rows as objects, by column name"]);
    });
  };
}

function senderOf(transaction: CallerTransaction) {
  const { query, unsafe } = (transaction ?? {}) as { readonly query?: unknown; readonly unsafe?: unknown };
  // A tagged template may have members of any name; whoever has `unsafe` takes its statements there.
  if (typeof unsafe === "function" && "unsafe" in transaction) {
    return async (text: string, values: (string | null)[]) => [...(await transaction.unsafe(text, values))];
  }
  if (typeof query === "function" && "query" in transaction) {
    return async (text: string, values: (string | null)[]) =>
      (await transaction.query(text, values)).rows ?? [];
  }
  throw configurationError("The transaction", [
    "it must have query(text, values), or unsafe(text, values) as postgres.js: hand over the transaction itself, or wrap its raw query",
  ]);
}

/** A wait for another transaction took too long. Nothing else can be said in the transaction but going back to a savepoint. */
export class WaitedTooLong extends Error {}

function meaningOf(cause: unknown): unknown {
  if (isOncekeyError(cause)) return cause;
  switch (stateOf(cause)) {
    case "55P03":
      return new WaitedTooLong("Another transaction holds the record", { cause });
    case "40001":
    case "40P01":
      return new OncekeyError(
        "RETRY_TRANSACTION",
        "The transaction conflicts with one that it cannot see. Roll it back and repeat it from its start.",
        { retryAfterMs: 0, cause },
      );
    case "25P01":
      return outsideTransaction();
    case "25P02":
    case "3B001":
    case "57P01":
    case "57P02":
    case "57P05":
    case "25P03":
      return new OncekeyError(
        "TRANSACTION_ABORTED",
        "The transaction has failed or has been ended. Nothing of it is kept: roll it back and repeat it from its start.",
        { cause },
      );
    default:
      return cause;
  }
}

export function outsideTransaction(): OncekeyError<"GUARANTEE_UNSUPPORTED"> {
  const message =
    "What was handed over is in no transaction, so nothing would hold together what is done. Begin one, and hand over its own object.";
  return new OncekeyError("GUARANTEE_UNSUPPORTED", message);
}

const DEPTH = 5;

/** Query builders put the client's error into one of their own, each under another name. */
function stateOf(error: unknown): string | undefined {
  let inner: unknown = error;
  for (let depth = 0; depth < DEPTH && typeof inner === "object" && inner !== null; depth += 1) {
    const { code, meta, cause, driverError, originalError } = inner as Readonly<Record<string, unknown>>;
    if (typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) && !/^[PE]\d{4}$/.test(code)) return code;
    inner = cause ?? driverError ?? originalError ?? meta;
  }
  return undefined;
}
