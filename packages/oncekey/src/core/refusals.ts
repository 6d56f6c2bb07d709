/**
 * @module
 * What a caller is told whose work is not started, because of what is on record.
 *
 * Invariant: the same state of a record is told in the same words, whichever way the caller came by it.
 */
import { OncekeyError } from "./errors.js";

/** A claim that is in flight is worth asking about again no sooner and no later than this. */
export const RETRY_AFTER_MS = { least: 1_000, most: 5_000 } as const;

export function alreadyCompleted(): OncekeyError<"ALREADY_COMPLETED"> {
  return new OncekeyError("ALREADY_COMPLETED", "The operation was completed before.", { completed: true });
}

export function keyReused(): OncekeyError<"KEY_REUSED"> {
  return new OncekeyError(
    "KEY_REUSED",
    "The key was used before for a request with other content. Use a new key for a new request.",
  );
}

export function attemptsExhausted(attempts: number): OncekeyError<"ATTEMPTS_EXHAUSTED"> {
  return new OncekeyError(
    "ATTEMPTS_EXHAUSTED",
    `The operation was started ${attempts} times without success and is not started again.`,
  );
}

export function storeFull(limit: "records" | "scope"): OncekeyError<"CAPACITY_EXCEEDED"> {
  return new OncekeyError("CAPACITY_EXCEEDED", `The idempotency store has no room left (${limit}).`, {
    retryAfterMs: RETRY_AFTER_MS.most,
  });
}

export function keyReentered(): OncekeyError<"KEY_REENTERED"> {
  return new OncekeyError(
    "KEY_REENTERED",
    "This work asked for its own key and would wait for itself. Use another key or operation inside.",
  );
}

export function outcomeUnknown(): OncekeyError<"OUTCOME_UNKNOWN"> {
  return new OncekeyError(
    "OUTCOME_UNKNOWN",
    "The operation was started and nobody knows how it ended. It is held until somebody says.",
  );
}

/** A refusal that says when it makes sense to ask again. */
export function inFlight(remainingMs: number, what: string): OncekeyError<"IN_FLIGHT"> {
  const retryAfterMs = Math.min(Math.max(remainingMs, RETRY_AFTER_MS.least), RETRY_AFTER_MS.most);
  return new OncekeyError("IN_FLIGHT", `${what} Try again later.`, { retryAfterMs, remainingMs });
}
