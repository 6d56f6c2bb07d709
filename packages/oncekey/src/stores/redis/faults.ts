/**
 * @module
 * What an error of a server or of a client means here, in a code and a sentence.
 *
 * Invariant: a fault is never taken for an answer about a record. `RECORD_UNREADABLE` is said only of a key that holds
 * something else than a record of ours.
 */
import { isOncekeyError, OncekeyError } from "../../core/errors.js";
import { unreadable } from "./reading.js";

/** First word of a server's error, to what it means and how soon it may be over. */
const MEANINGS: Readonly<Record<string, readonly [meaning: string, retryAfterMs: number]>> = {
  OOM: ["its memory is full (maxmemory)", 5_000],
  READONLY: ["it has become a replica", 1_000],
  LOADING: ["it is loading its data", 2_000],
  CLUSTERDOWN: ["its cluster is down", 2_000],
  MASTERDOWN: ["its primary is down", 2_000],
  TRYAGAIN: ["its slots are being moved", 1_000],
  MOVED: ["its slots have moved, more often than the client follows", 1_000],
  ASK: ["its slots are being moved", 1_000],
  BUSY: ["it is busy with somebody's script", 2_000],
  MISCONF: ["it cannot write its snapshot to the disk, and refuses writes", 5_000],
  NOREPLICAS: ["it has fewer replicas than min-replicas-to-write asks for", 5_000],
  NOAUTH: ["it wants a password", 5_000],
  WRONGPASS: ["the user or the password is wrong", 5_000],
  NOPERM: ["the user may not do this; see the commands in the documentation of the store", 5_000],
  ERR: ["it does not know the command (Redis 7.0 is needed, and 7.2 for waitAof), or refuses it", 5_000],
};

/** The word that a server's error begins with. What a client says by itself ("Connection is closed.") has none. */
export function wordOf(error: unknown): string {
  const message = error instanceof Error ? error.message : "";
  return /^[A-Z]{2,}(?=\s)/.exec(message)?.[0] ?? "";
}

/** The error that whoever called the store is given. */
export function faultOf(error: unknown): OncekeyError {
  if (isOncekeyError(error)) return error;
  // Raised inside a script it is wrapped in that script's own words.
  if (error instanceof Error && error.message.includes("WRONGTYPE")) return unreadable(error);
  const [meaning, retryAfterMs] = MEANINGS[wordOf(error)] ?? [
    "it cannot be reached, or did not answer",
    1_000,
  ];
  const message = `Redis did not do what it was asked: ${meaning}. Nothing is known about a change under way; try again.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs, cause: error });
}

export function closedStore(): OncekeyError<"STORE_UNAVAILABLE"> {
  return new OncekeyError("STORE_UNAVAILABLE", "The store has been closed.", { retryAfterMs: 1_000 });
}
