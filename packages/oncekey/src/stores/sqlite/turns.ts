/**
 * @module
 * One at a time, in the order of asking: exactly-once transactions share the one work connection.
 *
 * Invariants: at most one turn is taken; the line is bounded, and nobody stands in it longer than allowed.
 */
import { systemClock } from "../../core/clock.js";
import { OncekeyError } from "../../core/errors.js";

/** Each in the line holds a request open. */
const MAX_LINE = 1_000;

export interface Turns {
  /**
   * Resolves when it is one's turn; the turn lasts until `leave` is called.
   *
   * @throws OncekeyError `STORE_UNAVAILABLE` after `waitMs`, or if the line is too long.
   */
  enter(waitMs: number): Promise<Leave>;
}

export type Leave = () => void;

export function createTurns(): Turns {
  const line = new Set<() => void>();
  let taken = false;

  function take(): Leave {
    taken = true;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      taken = false;
      const [next] = line;
      next?.();
    };
  }

  return {
    enter(waitMs) {
      if (!taken) return Promise.resolve(take());
      if (line.size >= MAX_LINE) return Promise.reject(refused(`More than ${MAX_LINE} transactions wait`));
      return new Promise((resolve, reject) => {
        const enter = (): void => {
          line.delete(enter);
          timer.cancel();
          resolve(take());
        };
        const timer = systemClock.setTimer(() => {
          line.delete(enter);
          reject(refused(`Other exactly-once transactions of this process took longer than ${waitMs} ms`));
        }, waitMs);
        line.add(enter);
      });
    },
  };
}

function refused(why: string): OncekeyError<"STORE_UNAVAILABLE"> {
  const message = `${why}. Nothing was changed; try again.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000 });
}
