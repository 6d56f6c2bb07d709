/**
 * @module
 * Waking those who wait for a record, by publish/subscribe.
 *
 * A key is listened to from its first watch to its last. What was published before the server had confirmed that we listen, or
 * while the connection was away, is lost: so the keys concerned are then read once, together, and those that nobody holds
 * any more are woken for. Invariants: one subscription per key and process; registrations are bounded; nobody is woken inside
 * the call that made the change, nor after it stopped watching. What is lost all the same is left to the core's fallback.
 */
import { DEFAULT_LIMITS } from "../../core/limits.js";
import type { RecordKey } from "../../core/record.js";
import type { KeyStatus, WakeUp, Watch } from "../../core/store.js";

/** One registration per key is the rule, so this is about as many keys as may be waited for. */
const MAX_WATCHES = DEFAULT_LIMITS.maxWaiters;

const NOT_WATCHED: Watch = { close() {} };

export interface Watchers {
  watch(key: RecordKey, wake: WakeUp): Watch;
  published(key: RecordKey): void;
  /** Listening again after a time of which nothing is known. */
  missed(): void;
  close(): void;
}

export interface WatchersOptions {
  /** Resolves once what is published is heard. */
  readonly subscribe: (key: RecordKey) => Promise<void>;
  readonly unsubscribe: (key: RecordKey) => void;
  readonly status: (keys: readonly RecordKey[]) => Promise<readonly KeyStatus[]>;
}

export function createWatchers({ subscribe, unsubscribe, status }: WatchersOptions): Watchers {
  const watched = new Map<RecordKey, Set<WakeUp>>();
  let watches = 0;
  let closed = false;
  /** Keys of which a change may have been missed, read together in the next turn. */
  let missedKeys = new Set<RecordKey>();

  function wakeAll(key: RecordKey): void {
    // A copy: whoever is woken may stop watching at once.
    for (const wake of [...(watched.get(key) ?? [])]) {
      try {
        wake();
      } catch {
        // One waiter's fault must not keep the others asleep.
      }
    }
  }

  function readMissed(keys: Iterable<RecordKey>): void {
    if (missedKeys.size === 0) setImmediate(() => void readNow());
    for (const key of keys) missedKeys.add(key);
  }

  async function readNow(): Promise<void> {
    const keys = [...missedKeys].filter((key) => watched.has(key));
    missedKeys = new Set();
    if (closed || keys.length === 0) return;
    try {
      const states = await status(keys);
      for (const [index, key] of keys.entries()) {
        if (states[index]?.state !== "claimed") wakeAll(key);
      }
    } catch {
      // A server that cannot be read wakes nobody: waiters have their own fallback, and it reports the fault.
    }
  }

  function register(key: RecordKey, wake: WakeUp): Watch {
    // Registered twice it is woken twice: each registration is closed on its own.
    const own: WakeUp = () => wake();
    let wakeUps = watched.get(key);
    if (wakeUps === undefined) {
      wakeUps = new Set();
      watched.set(key, wakeUps);
      subscribe(key).then(
        () => readMissed([key]),
        () => undefined,
      );
    }
    wakeUps.add(own);
    watches += 1;
    const mine = wakeUps;
    return {
      close() {
        if (!mine.delete(own)) return;
        watches -= 1;
        if (mine.size > 0 || watched.get(key) !== mine) return;
        watched.delete(key);
        if (!closed) unsubscribe(key);
      },
    };
  }

  return {
    // Too many: this one sees the change by reading from time to time, as if its wake-up were lost.
    watch: (key, wake) => (closed || watches >= MAX_WATCHES ? NOT_WATCHED : register(key, wake)),
    published: wakeAll,
    missed: () => readMissed(watched.keys()),
    close() {
      closed = true;
      watched.clear();
    },
  };
}
