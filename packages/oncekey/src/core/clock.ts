/**
 * @module
 * Time, and the only file that reads it from the platform.
 *
 * Invariant: everything else gets its time from an injected `Clock`, so that a test can move it by hand.
 */

declare const brand: unique symbol;
/** Milliseconds since 1970-01-01T00:00Z. */
export type EpochMs = number & { readonly [brand]: "EpochMs" };

/** A timer that was set; `cancel` may be called more than once. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall clock, for what is shown to people or shared with other processes. It may jump. */
  now(): EpochMs;
  /** Milliseconds from an arbitrary start; never goes back. */
  monotonicMs(): number;
  /**
   * Calls `wake` once, not before `delayMs` have passed.
   *
   * @param keepAlive whether a pending timer keeps the process running; a wait does, a sweep does not.
   */
  setTimer(wake: () => void, delayMs: number, keepAlive?: boolean): Timer;
}

/** A longer delay overflows the platform's timers, which then fire at once. */
const MAX_DELAY_MS = 2_147_483_647;

/** The platform's own clock. */
export const systemClock: Clock = {
  now: () => Date.now() as EpochMs,
  monotonicMs: () => performance.now(),
  setTimer(wake, delayMs, keepAlive = true) {
    const handle: unknown = setTimeout(wake, Math.min(Math.max(0, delayMs), MAX_DELAY_MS));
    if (!keepAlive) unref(handle);
    return { cancel: () => clearTimeout(handle as Parameters<typeof clearTimeout>[0]) };
  },
};

/** Node and Bun return an object with `unref`; elsewhere a timer is a number and keeps nothing alive. */
function unref(handle: unknown): void {
  if (
    typeof handle === "object" &&
    handle !== null &&
    "unref" in handle &&
    typeof handle.unref === "function"
  ) {
    handle.unref();
  }
}
