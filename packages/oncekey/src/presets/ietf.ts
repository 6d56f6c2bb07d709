/**
 * @module
 * The behaviour that draft-ietf-httpapi-idempotency-key-header-07 asks of a resource.
 *
 * Invariant: it differs from the built-in policy in one thing, which is what a repeat gets while the first is in
 * flight. What the draft says of keys, fingerprints and refusals is how every HTTP adapter behaves.
 */
import type { Policy } from "../core/policy.js";

/**
 * A repeat of completed work gets the first result, a success or an error (§2.6); a repeat of work in flight gets 409 at
 * once (§2.6, §2.7). Retention is left to the resource, which has to publish it (§2.3): here it is the default, a day.
 *
 * @example createIdempotency({ ...ietf, store })
 */
export const ietf = {
  onCompleted: "replay",
  onInFlight: "reject",
} as const satisfies Policy;
