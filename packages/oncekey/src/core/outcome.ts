/**
 * @module
 * Names how a call ended, for the one counter that everybody keeps.
 *
 * Invariant: each call has exactly one outcome.
 */

import type { Performed } from "./call.js";
import { type ErrorCode, isOncekeyError } from "./errors.js";
import type { CallOutcome } from "./events.js";

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

/** The counter's label for a call. */
export function finishedAs(
  end: Performed<unknown> | { readonly kind: "refused"; readonly error: unknown; readonly waitedMs: number },
): CallOutcome {
  switch (end.kind) {
    case "executed":
      return end.ending === "kept" ? "executed" : end.ending === "unknown" ? "outcome_unknown" : "released";
    case "unprotected":
      return "store_failure";
    case "superseded":
      return "lease_lost";
    case "replayed":
      return end.waitedMs > 0 ? "replayed_after_wait" : "replayed";
    case "refused": {
      if (!isOncekeyError(end.error)) return "rejected";
      if (end.error.code === "IN_FLIGHT") return end.waitedMs > 0 ? "wait_timeout" : "conflict";
      return OUTCOME_OF_CODE[end.error.code] ?? "rejected";
    }
  }
}
