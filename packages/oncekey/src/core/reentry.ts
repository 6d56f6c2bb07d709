/**
 * @module
 * Notices that work asks for its own key from inside itself, which could only wait for itself for ever.
 *
 * Work that a carrier is given to (a request) is found on it: a request that is protected twice is noticed. Other work is
 * followed through its promises, where the platform can; before Node 24 that makes every promise of the process
 * dearer, so a service that only protects requests does without.
 *
 * Invariant: only work that still runs counts; something it left behind may use the key later. Where nothing is
 * noticed, such a call waits until its time limit.
 */
import { type Context, createContext } from "#platform";
import type { Awaitable } from "./awaitable.js";
import type { Call } from "./call.js";
import type { RecordKey } from "./record.js";
import { isWorkOf } from "./work.js";

interface Running {
  readonly key: RecordKey;
  readonly outer: Running | undefined;
  ended: boolean;
}

const context = createContext<Running>();

type Follower = Pick<Call<unknown>, "identity" | "carrier">;

/**
 * Whether the caller is inside running work of its key.
 *
 * @param running whether there is such work in this process.
 */
export function isInside({ identity: { key }, carrier }: Follower, running: boolean): boolean {
  // A carrier keeps its work, which may have ended.
  if (carrier !== undefined) return running && isWorkOf(carrier, key);
  for (let outer = context?.current(); outer !== undefined; outer = outer.outer) {
    if (outer.key === key && !outer.ended) return true;
  }
  return false;
}

/** Runs `work` as the work of a call. */
export function inside<R>({ identity: { key }, carrier }: Follower, work: () => Awaitable<R>): Awaitable<R> {
  return context === undefined || carrier !== undefined ? work() : follow(context, key, work);
}

async function follow<R>(context: Context<Running>, key: RecordKey, work: () => Awaitable<R>): Promise<R> {
  const running: Running = { key, outer: context.current(), ended: false };
  try {
    return await context.run(running, work);
  } finally {
    running.ended = true;
  }
}
