/**
 * @module
 * A clock that stands still until a test moves it.
 *
 * Invariant: timers fire in the order in which they are due, each at its own instant, and what a timer sets
 * off has run as far as promises carry it before the next one fires. Real I/O is not waited for.
 */
import { yieldTurn } from "#platform";
import type { Clock, EpochMs, Timer } from "../core/clock.js";

export interface ManualClock extends Clock {
  /** Lets `ms` pass: fires the timers that fall due, letting promises settle between them. */
  advance(ms: number): Promise<void>;
  /** Lets promises settle while no time passes. */
  settle(): Promise<void>;
  /** Moves only the wall clock, as its owner or a time server may. Negative goes back. */
  jump(ms: number): void;
  /** Timers that are set and have not fired. */
  pending(): number;
}

interface Pending {
  readonly dueMs: number;
  readonly wake: () => void;
}

/** More timers than this without any time passing is a timer that sets itself again for ever. */
const MAX_TIMERS_AT_ONE_INSTANT = 100_000;
/** A continuation that itself waits for a turn of the event loop still counts as settling. */
const TURNS = 2;

/**
 * Makes a clock to be moved by hand.
 *
 * @param startsAt what its wall clock shows first. @defaultValue 2026-01-01T00:00Z
 */
export function manualClock(startsAt: number = Date.UTC(2026, 0, 1)): ManualClock {
  let monotonicMs = 0;
  let wallOffsetMs = startsAt;
  /** In the order in which they fire. */
  const timers: Pending[] = [];

  function setTimer(wake: () => void, delayMs: number): Timer {
    const timer = { dueMs: monotonicMs + Math.max(0, delayMs), wake };
    timers.splice(timers.findLastIndex((other) => other.dueMs <= timer.dueMs) + 1, 0, timer);
    return {
      cancel() {
        const index = timers.indexOf(timer);
        if (index !== -1) timers.splice(index, 1);
      },
    };
  }

  async function settle(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn++) await yieldTurn();
  }

  async function advance(ms: number): Promise<void> {
    if (!(ms >= 0 && ms < Number.POSITIVE_INFINITY)) {
      throw new RangeError(`Time passes by a finite number of milliseconds, 0 or more: ${ms}`);
    }
    const untilMs = monotonicMs + ms;
    // What the test has just called may be about to set its timers.
    await settle();
    let firedAtOnce = 0;
    for (let timer = timers[0]; timer !== undefined && timer.dueMs <= untilMs; timer = timers[0]) {
      timers.shift();
      firedAtOnce = timer.dueMs > monotonicMs ? 0 : firedAtOnce + 1;
      if (firedAtOnce > MAX_TIMERS_AT_ONE_INSTANT) throw new Error("A timer sets itself again with no delay");
      monotonicMs = Math.max(monotonicMs, timer.dueMs);
      timer.wake();
      await settle();
    }
    monotonicMs = untilMs;
    await settle();
  }

  return {
    now: () => (wallOffsetMs + monotonicMs) as EpochMs,
    monotonicMs: () => monotonicMs,
    setTimer,
    advance,
    settle,
    jump(ms) {
      wallOffsetMs += ms;
    },
    pending: () => timers.length,
  };
}
