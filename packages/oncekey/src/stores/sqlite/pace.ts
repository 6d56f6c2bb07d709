/**
 * @module
 * Waiting for the file without blocking the event loop.
 *
 * SQLite's own `busy_timeout` sleeps inside the call: with it, a process whose event loop waits for a lock
 * cannot commit the transaction that holds it. So it is 0 everywhere, and whoever finds the file busy comes
 * back a little later. Invariant: every wait ends. It runs on real time: a clock that a test moves by hand
 * does not move the file.
 */
import { systemClock } from "../../core/clock.js";
import { isOncekeyError, OncekeyError } from "../../core/errors.js";
import { faultOf } from "./driver.js";

const FIRST_DELAY_MS = 1;
const LONGEST_DELAY_MS = 20;

/** A random delay that grows with each try, so that processes which met once do not meet for ever. */
export function jitteredMs(tries: number): number {
  const longest = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(tries, 10));
  return FIRST_DELAY_MS + Math.random() * (longest - FIRST_DELAY_MS);
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    systemClock.setTimer(resolve, delayMs);
  });
}

/** Lets the event loop turn once. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

export function monotonicMs(): number {
  return systemClock.monotonicMs();
}

/**
 * Tries again while the file is busy, for at most `waitMs`.
 *
 * @param keepsTrying asked before each further try.
 * @throws OncekeyError `STORE_UNAVAILABLE` once the time is over; anything but "busy" as it was thrown.
 */
export async function whileBusy<T>(
  attempt: () => T,
  waitMs: number,
  keepsTrying: () => boolean = () => true,
): Promise<T> {
  const endsAtMs = monotonicMs() + waitMs;
  for (let tries = 0; ; tries += 1) {
    try {
      return attempt();
    } catch (error) {
      if (faultOf(error) !== "busy") throw error;
      if (!keepsTrying() || monotonicMs() >= endsAtMs) throw busyFor(waitMs, error);
    }
    await pause(jitteredMs(tries));
  }
}

export function busyFor(waitMs: number, cause: unknown): OncekeyError<"STORE_UNAVAILABLE"> {
  const message = `The database was being written by another connection for longer than ${waitMs} ms. Nothing was changed; try again.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause });
}

/**
 * An error of SQLite as the coded error that the port promises; coded errors pass as they are.
 *
 * Whether anything was changed is not said: an I/O error may come after the disk has got everything.
 */
export function unavailable(cause: unknown): OncekeyError {
  if (isOncekeyError(cause)) return cause;
  const why = cause instanceof Error ? cause.message : String(cause);
  const message = `The database cannot be used now: ${why}. The call may be repeated once the cause is gone.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause });
}
