/**
 * @module
 * Notices that work asks for its own key from inside itself, which could only wait for itself for ever.
 *
 * Invariant: only work that still runs counts; something it left behind may use the key later. On platforms that cannot
 * follow a call through its promises nothing is noticed, and such a call waits until its time limit.
 */
import { createContext } from "#platform";
import type { RecordKey } from "./record.js";

interface Running {
  readonly key: RecordKey;
  readonly outer: Running | undefined;
  ended: boolean;
}

const context = createContext<Running>();

/** Whether the caller is inside running work of `key`. */
export function isInside(key: RecordKey): boolean {
  for (let running = context?.current(); running !== undefined; running = running.outer) {
    if (running.key === key && !running.ended) return true;
  }
  return false;
}

/** Runs `work` as the work of `key`. */
export async function inside<R>(key: RecordKey, work: () => Promise<R>): Promise<R> {
  if (context === undefined) return work();
  const running: Running = { key, outer: context.current(), ended: false };
  try {
    return await context.run(running, work);
  } finally {
    running.ended = true;
  }
}
