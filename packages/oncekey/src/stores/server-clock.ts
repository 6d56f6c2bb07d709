/**
 * @module
 * What the server's clock shows at a moment of this process's monotonic clock.
 *
 * It is needed for one thing: a claim carries the instant, by the server's own clock, after which the server must not make it
 * any more. A statement that lay somewhere on the way (a stopped server, a pooler's queue) then changes nothing when its
 * caller has long been refused. The host's wall clock is never read.
 *
 * Invariant: the estimate is never ahead of the server's clock, as long as that runs evenly, so nothing is made that its caller
 * was refused; it is behind by no more than the quickest answer took. After a jump the next answer corrects it.
 */
export interface ServerClock {
  /** An answer that shows `serverMs` arrived now, to what was sent at `sentAtMs`. */
  seen(serverMs: number, sentAtMs: number, arrivedAtMs: number): void;
  /** The server's instant at `monotonicMs`; `undefined` before the first answer. */
  at(monotonicMs: number): number | undefined;
}

export function createServerClock(): ServerClock {
  /** Server minus monotonic lies between these. */
  let least = Number.NEGATIVE_INFINITY;
  let most = Number.POSITIVE_INFINITY;
  return {
    seen(serverMs, sentAtMs, arrivedAtMs) {
      const [low, high] = [serverMs - arrivedAtMs, serverMs + 1 - sentAtMs];
      // Where old and new do not meet, the clocks have drifted apart or one was set: only the new counts.
      const meets = low <= most && high >= least;
      least = meets ? Math.max(least, low) : low;
      most = meets ? Math.min(most, high) : high;
    },
    at: (monotonicMs) => (least === Number.NEGATIVE_INFINITY ? undefined : monotonicMs + least),
  };
}
