/**
 * @module test/servers/faults/asking
 *
 * Asking again, as clients do: for a while, and only after refusals that say that it may help.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Outcome } from "./apps/caller.mjs";
import { LEASE_MS } from "./subject.js";

/**
 * Asks until the answer is none of `passing`, for at most six leases. On a busy machine even a healthy store may answer later
 * than it has to: unless a test is about just that, it is asked again.
 */
export async function answered(
  call: () => Promise<Outcome>,
  passing: readonly string[] = ["STORE_UNAVAILABLE"],
): Promise<Outcome> {
  const deadline = performance.now() + 6 * LEASE_MS;
  for (;;) {
    const outcome = await call();
    const again = outcome.kind === "refused" && passing.includes(outcome.code);
    if (!again || performance.now() > deadline) return outcome;
    await sleep(20);
  }
}

/** What passes by itself once a fault is over: the claims of those who were refused are released, commits are looked up. */
export const PASSING = [
  "IN_FLIGHT",
  "STORE_UNAVAILABLE",
  "ATTEMPT_FAILED",
  "NOT_COMMITTED",
  "COMMIT_UNDECIDED",
] as const;
