/**
 * @module
 * Removing expired records now and then.
 *
 * Invariant: at most one sweep at a time, each bounded; its timer does not keep the process running. Several
 * processes may sweep the same records: whoever comes second finds nothing.
 */
import type { Clock, Timer } from "../core/clock.js";

/** One sweep removes at most this many; what is left waits for the next. */
const RECORDS_PER_SWEEP = 20_000;

export interface Sweep {
  stop(): void;
}

/** @param intervalMs 0: never. */
export function startSweep(
  clock: Clock,
  intervalMs: number,
  purge: (limit: number) => Promise<number>,
): Sweep {
  let timer: Timer | undefined;
  let stopped = intervalMs === 0;

  function arm(): void {
    if (stopped) return;
    // A store that cannot be written now is not this timer's to report; the next sweep finds the same records.
    const again = (): void => void purge(RECORDS_PER_SWEEP).then(arm, arm);
    timer = clock.setTimer(again, intervalMs, false);
  }

  arm();
  return {
    stop() {
      stopped = true;
      timer?.cancel();
    },
  };
}
