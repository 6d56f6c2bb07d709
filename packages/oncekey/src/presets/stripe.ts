/**
 * @module
 * The behaviour that clients of Stripe's interface know.
 *
 * Invariant: once the work has begun, its result is kept, whatever it was. Keys of up to 255 characters and a refusal of
 * other parameters are how every HTTP adapter behaves.
 *
 * @see https://docs.stripe.com/api/idempotent_requests
 * @see https://docs.stripe.com/error-low-level
 */
import { isOncekeyError } from "../core/errors.js";
import { type Ending, type Policy, refusedBeforeWork } from "../core/policy.js";

const DAY_MS = 86_400_000;
const TOO_MANY_REQUESTS = 429;

/**
 * Results are kept for a day, errors of the server included; a repeat of work in flight gets 409 at once.
 *
 * Not kept is what says that the work did not begin: an answer of 401, 407, 421 or 429, and `notPerformed`. Answers to
 * parameters that are not valid are kept, unless they are given before the idempotency layer.
 *
 * @example app.post("/payments", idempotent(idempotency, { ...stripe, scope }), charge)
 */
export const stripe = {
  retentionMs: DAY_MS,
  onCompleted: "replay",
  onInFlight: "reject",
  keep: keepsWhatBegan,
} as const satisfies Policy;

function keepsWhatBegan(ending: Ending): boolean {
  switch (ending.kind) {
    case "answered":
      return ending.status !== TOO_MANY_REQUESTS && !refusedBeforeWork(ending.status);
    case "threw":
      // What this package throws inside the work (a lost claim, nothing performed) speaks of the claim, not of the work.
      return !isOncekeyError(ending.error);
    case "returned":
      return true;
  }
}
