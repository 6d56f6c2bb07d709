/**
 * @module
 * What an error of Postgres means here.
 *
 * Invariant: only what the server has said itself (a code of SQLSTATE) tells that a statement did nothing; an error without
 * one is a lost connection, and its statement may have landed.
 */
import { configurationError, isOncekeyError, OncekeyError } from "../../core/errors.js";
import type { BatchFault } from "../batch-sending.js";

/** The code of an error that the server sent. Clients' own errors have codes too (`EPIPE`), but no severity. */
export function sqlStateOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown };
  if (typeof code !== "string" || typeof severity !== "string") return undefined;
  return /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** The server says that it is going down or has ended this session, or the client that the connection is gone. */
export function endsSession(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state !== undefined) return /^(?:57P|08)/.test(state);
  const code = (error as { readonly code?: unknown } | undefined)?.code;
  return typeof code === "string" && /^(?:CONNECTION_|ECONN|EPIPE|ETIMEDOUT)/.test(code);
}

/** A statement of the store's own may have landed all the same: nobody has said that it did not. */
export function isConnectionLost(error: unknown): boolean {
  if (isOncekeyError(error)) return false;
  return sqlStateOf(error) === undefined || endsSession(error);
}

/** Serialization failure, deadlock: nothing was done, and the same may succeed at once. */
export function isRepeatable(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === "40001" || state === "40P01";
}

/** Whether the connection is of no more use: lost, or to a server that was the primary and is not any more. */
export function isConnectionUseless(error: unknown): boolean {
  return isConnectionLost(error) || sqlStateOf(error) === "25006";
}

export function batchFaultOf(error: unknown): BatchFault {
  if (error instanceof TypeError || isOncekeyError(error, "RECORD_UNREADABLE")) return "entry";
  // A refusal of the store itself (no connection, closed, no tables) is the same for each of them.
  if (isOncekeyError(error)) return "other";
  if (isConnectionLost(error) || isRepeatable(error)) return "passing";
  // Data exceptions, violated constraints, exceeded limits, more keys than the server can lock at a time.
  return /^(?:22|23|54|53200)/.test(sqlStateOf(error) ?? "") ? "entry" : "other";
}

/** An error as the coded error that the port promises; coded errors pass as they are. */
export function unavailable(cause: unknown): OncekeyError {
  if (isOncekeyError(cause)) return cause;
  const why = cause instanceof Error ? cause.message : String(cause);
  switch (sqlStateOf(cause)) {
    case "42P01":
    case "42703":
    case "3F000":
      return notMigrated(why);
    case "42501":
      return configurationError("postgresStore", [
        `the database user may not do this: ${why}. It needs SELECT, INSERT, UPDATE and DELETE on the tables`,
      ]);
    default: {
      const message = `Postgres cannot be used now: ${why}. The call may be repeated once the cause is gone.`;
      return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause });
    }
  }
}

export function notMigrated(why: string): OncekeyError<"CONFIGURATION_INVALID"> {
  return configurationError("postgresStore", [
    `its tables are missing or older than this package needs (${why}): apply what postgresMigrations() gives with your migration tool, or call await store.migrate()`,
  ]);
}
