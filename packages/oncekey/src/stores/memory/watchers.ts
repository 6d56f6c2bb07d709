/**
 * @module
 * Waking those in this process who wait for a record.
 *
 * Invariant: nobody is woken inside the call that changed the record, so a waiter that reads at once finds
 * the change whole, and one that throws hurts nobody else.
 */
import { DEFAULT_LIMITS } from "../../core/limits.js";
import type { RecordKey } from "../../core/record.js";
import type { WakeUp, Watch } from "../../core/store.js";

/** One registration per key is the rule, so this is about as many keys as may be waited for. */
const MAX_WATCHES = DEFAULT_LIMITS.maxWaiters;

const NOT_WATCHED: Watch = { close() {} };

export interface Watchers {
  watch(key: RecordKey, wake: WakeUp): Watch;
  changed(key: RecordKey): void;
  close(): void;
}

export function createWatchers(): Watchers {
  const watched = new Map<RecordKey, Set<WakeUp>>();
  let watches = 0;

  function register(key: RecordKey, wake: WakeUp): Watch {
    // Registered twice it is woken twice: each registration is closed on its own.
    const own: WakeUp = () => wake();
    const wakeUps = watched.get(key) ?? new Set();
    watched.set(key, wakeUps.add(own));
    watches++;
    return {
      close() {
        if (!wakeUps.delete(own)) return;
        watches--;
        if (wakeUps.size === 0 && watched.get(key) === wakeUps) watched.delete(key);
      },
    };
  }

  return {
    // Too many: this one sees the change by reading from time to time, as if its wake-up were lost.
    watch: (key, wake) => (watches < MAX_WATCHES ? register(key, wake) : NOT_WATCHED),
    changed(key) {
      const wakeUps = watched.get(key);
      if (wakeUps === undefined) return;
      for (const wake of wakeUps) {
        queueMicrotask(() => {
          if (wakeUps.has(wake)) wake();
        });
      }
    },
    close() {
      for (const wakeUps of watched.values()) wakeUps.clear();
      watched.clear();
      watches = 0;
    },
  };
}
