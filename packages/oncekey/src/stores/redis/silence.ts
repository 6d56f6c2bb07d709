/**
 * @module
 * Noticing that a connection owes answers and gives none.
 *
 * A client that has a time limit of its own for this may count every write as a sign of life; then it never ends a connection on
 * which somebody writes. Invariant: one timer for a connection, whatever is asked on it, and none while nothing is owed.
 */
import { systemClock } from "../../core/clock.js";
import type { Timeouts } from "./driver.js";

/** Passes an answer on, and notes that it is owed until then. */
export type Owing = <Reply>(answer: Promise<Reply>) => Promise<Reply>;

/** @param giveUp called once the connection has owed answers for `answerMs` and not given one. */
export function watchSilence({ answerMs }: Timeouts, giveUp: () => void): Owing {
  let owed = 0;
  let silentSinceMs = 0;
  let watching = false;

  function watch(forMs: number): void {
    watching = true;
    systemClock.setTimer(look, forMs, false);
  }

  function look(): void {
    watching = false;
    if (owed === 0) return;
    const leftMs = silentSinceMs + answerMs - systemClock.monotonicMs();
    if (leftMs > 0) watch(leftMs);
    else giveUp();
  }

  function answered(): void {
    owed -= 1;
    silentSinceMs = systemClock.monotonicMs();
  }

  return (answer) => {
    if (owed === 0) silentSinceMs = systemClock.monotonicMs();
    owed += 1;
    if (!watching) watch(answerMs);
    answer.then(answered, answered);
    return answer;
  };
}
