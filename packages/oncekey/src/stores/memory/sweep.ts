/**
 * @module
 * Removing expired records while nobody calls.
 *
 * Invariant: there is at most one timer, none while nothing is to expire, and a million records that expire
 * together are removed in slices with the event loop's turn between them.
 */
import type { Timer } from "../../core/clock.js";
import type { Settings } from "./options.js";
import { purgeExpired, type Records } from "./records.js";

/** Less than a millisecond of work, also where memory is slow. */
const SLICE = 250;
/** Between two slices others get their turn. */
const BETWEEN_SLICES_MS = 1;

export interface Sweep {
  /** A record now expires at this time. Cheap: called for every change. */
  plan(expiresAtMs: number): void;
  stop(): void;
}

export function createSweep(records: Records, settings: Settings, nowMs: () => number): Sweep {
  const { clock, sweepIntervalMs } = settings;
  let timer: Timer | undefined;
  let wakesAtMs = Number.POSITIVE_INFINITY;

  function wakeIn(delayMs: number, now: number): void {
    timer?.cancel();
    wakesAtMs = now + delayMs;
    timer = clock.setTimer(sweep, delayMs, false);
  }

  function plan(expiresAtMs: number): void {
    // An interval late is soon enough, so that a stream of new records does not move the timer each time.
    if (sweepIntervalMs === 0 || expiresAtMs + sweepIntervalMs >= wakesAtMs) return;
    const now = nowMs();
    if (now + sweepIntervalMs < wakesAtMs) wakeIn(Math.max(sweepIntervalMs, expiresAtMs - now), now);
  }

  function sweep(): void {
    timer = undefined;
    wakesAtMs = Number.POSITIVE_INFINITY;
    const now = nowMs();
    if (purgeExpired(records, now, SLICE) === SLICE) wakeIn(BETWEEN_SLICES_MS, now);
    else plan(records.expiry.nextMs());
  }

  return {
    plan,
    stop() {
      timer?.cancel();
      timer = undefined;
      // Nothing is earlier than this: it plans nothing any more.
      wakesAtMs = Number.NEGATIVE_INFINITY;
    },
  };
}
