/**
 * @module
 * Clients that leave: many waits may listen to one `AbortSignal`, that of a request which makes several calls, or of a shutdown.
 *
 * Invariant: one listener for each signal, however many wait, since Node warns of a leak from the eleventh on; it goes with the last.
 */

interface Listeners {
  readonly leave: Set<() => void>;
  readonly abort: () => void;
}

const listening = new WeakMap<AbortSignal, Listeners>();

/** Calls `leave` when the signal fires, once. Returns what stops it. */
export function onAbort(signal: AbortSignal, leave: () => void): () => void {
  const listeners = listening.get(signal) ?? listen(signal);
  // A function of its own, for whoever registers the same one twice.
  const mine = (): void => leave();
  listeners.leave.add(mine);
  return () => {
    if (!listeners.leave.delete(mine) || listeners.leave.size > 0) return;
    signal.removeEventListener("abort", listeners.abort);
    if (listening.get(signal) === listeners) listening.delete(signal);
  };
}

function listen(signal: AbortSignal): Listeners {
  const leave = new Set<() => void>();
  const abort = (): void => {
    listening.delete(signal);
    for (const one of [...leave]) if (leave.delete(one)) one();
  };
  const listeners: Listeners = { leave, abort };
  signal.addEventListener("abort", abort, { once: true });
  listening.set(signal, listeners);
  return listeners;
}
