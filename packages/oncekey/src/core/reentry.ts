/**
 * @module
 * Knows which work a caller is inside of: what asks for its own key there could only wait for itself for ever.
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
import type { Call, Ended } from "./call.js";
import type { RecordKey } from "./record.js";
import { type Begun, isWorkOf, type Work } from "./work.js";

interface Running {
  /** The instance that runs it. */
  readonly of: object;
  readonly key: RecordKey;
  readonly begun: Begun;
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

/** The innermost running work of an instance that the caller is inside of, unless that is found on a carrier. */
export function workAround(of: object): Work | undefined {
  for (let running = context?.current(); running !== undefined; running = running.outer) {
    if (running.of === of && !running.ended) return running.begun.work();
  }
  return undefined;
}

/** Runs the work of a call of the instance `of`, which finds that work by itself. */
export function inside<E>(of: object, call: Call<E>, begun: Begun): Awaitable<Ended<E>> {
  return context === undefined || call.carrier !== undefined
    ? call.run(begun)
    : follow(context, of, call, begun);
}

async function follow<E>(
  context: Context<Running>,
  of: object,
  call: Call<E>,
  begun: Begun,
): Promise<Ended<E>> {
  const { key } = call.identity;
  const running: Running = { of, key, begun, outer: context.current(), ended: false };
  try {
    return await context.run(running, () => call.run(begun));
  } finally {
    running.ended = true;
  }
}
