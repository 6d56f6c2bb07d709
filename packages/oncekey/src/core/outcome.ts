/**
 * @module
 * Names how a call ended, for the one counter that everybody keeps.
 *
 * Invariant: each call has exactly one outcome.
 */

import type { Performed } from "./call.js";
import { type ErrorCode, isOncekeyError, type OncekeyError, unreachable } from "./errors.js";
import type { CallOutcome, EventListener } from "./events.js";

const OUTCOME_OF_CODE: Partial<Record<ErrorCode, CallOutcome>> = {
  KEY_REUSED: "fingerprint_mismatch",
  STORE_UNAVAILABLE: "store_failure",
  OUTCOME_UNKNOWN: "outcome_unknown",
  COMMIT_UNDECIDED: "outcome_unknown",
  NOT_COMMITTED: "released",
  LEASE_LOST: "lease_lost",
  KEY_MISSING: "missing_key",
  KEY_INVALID: "invalid_key",
  SCOPE_MISSING: "missing_scope",
};

/** A call that was refused, and how long it had waited by then. */
interface Refused {
  readonly kind: "refused";
  readonly error: unknown;
  readonly waitedMs: number;
}

const OUTCOME_OF_ENDING = {
  kept: "executed",
  pending: "executed",
  released: "released",
  unknown: "outcome_unknown",
} as const satisfies Record<
  Extract<Performed<unknown>, { readonly kind: "executed" }>["ending"],
  CallOutcome
>;

/** Reports a call that was refused before the engine was asked, as the engine reports all others. */
export function reportRefused(emit: EventListener, operation: string, error: OncekeyError): void {
  emit({ type: "rejected", operation, key: undefined, code: error.code, cause: error.cause });
  const outcome = finishedAs({ kind: "refused", error, waitedMs: 0 });
  emit({ type: "finished", operation, key: undefined, outcome, tookMs: 0, waitedMs: 0 });
}

/** The counter's label for a call. */
export function finishedAs(end: Performed<unknown> | Refused): CallOutcome {
  switch (end.kind) {
    case "executed":
      return OUTCOME_OF_ENDING[end.ending];
    case "unprotected":
      return "store_failure";
    case "superseded":
      return "lease_lost";
    case "replayed":
      return end.waitedMs > 0 ? "replayed_after_wait" : "replayed";
    case "refused":
      return refusedAs(end);
    default:
      return unreachable(end);
  }
}

function refusedAs({ error, waitedMs }: Refused): CallOutcome {
  if (!isOncekeyError(error)) return "rejected";
  if (error.code === "IN_FLIGHT") return waitedMs > 0 ? "wait_timeout" : "conflict";
  return OUTCOME_OF_CODE[error.code] ?? "rejected";
}
