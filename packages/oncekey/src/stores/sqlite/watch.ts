/**
 * @module
 * Waking those who wait for a record.
 *
 * What this process writes wakes its own waiters at once. What another process (or an exactly-once
 * transaction of ours) writes shows in `PRAGMA data_version`, which is looked at every 20 ms, and only while
 * somebody waits; when it has changed, the watched keys are read together.
 *
 * Invariants: the version is noted before `watch` returns, so a change after it is seen by the next look; registrations
 * are bounded.
 */
import { systemClock, type Timer } from "../../core/clock.js";
import { DEFAULT_LIMITS } from "../../core/limits.js";
import type { RecordKey } from "../../core/record.js";
import type { KeyStatus, WakeUp, Watch } from "../../core/store.js";
import { MAX_STATUS } from "./statements.js";

/** A look costs about ten microseconds. */
const LOOK_EVERY_MS = 20;
/** One registration per key is the rule, so this is about as many keys as may be waited for. */
const MAX_WATCHES = DEFAULT_LIMITS.maxWaiters;

const NOT_WATCHED: Watch = { close() {} };

export interface Watchers {
  watch(key: RecordKey, wake: WakeUp): Watch;
  /** This process has just ended a claim of `key`, or made it unknown. */
  changed(key: RecordKey): void;
  close(): void;
}

interface Watched {
  readonly wakeUps: Set<WakeUp>;
  /** What was seen last, so that one change wakes once. */
  seen: string | undefined;
}

export interface WatchersOptions {
  readonly dataVersion: () => number;
  readonly status: (keys: readonly RecordKey[]) => readonly KeyStatus[];
}

export function createWatchers({ dataVersion, status }: WatchersOptions): Watchers {
  const watched = new Map<RecordKey, Watched>();
  let timer: Timer | undefined;
  let watches = 0;
  let closed = false;
  let version = 0;
  /** Keys that the last change still has to be compared with. */
  let unread: RecordKey[] = [];

  function look(): void {
    timer = systemClock.setTimer(look, LOOK_EVERY_MS, false);
    try {
      const now = dataVersion();
      // Those that an earlier change has left come first: under steady writing the others wait for their turn, not for ever.
      if (now !== version) unread = [...new Set([...unread, ...watched.keys()])];
      version = now;
      compare(unread.splice(0, MAX_STATUS));
    } catch {
      // A file that cannot be read wakes nobody: waiters have their own fallback, and it reports the fault.
    }
  }

  function compare(keys: readonly RecordKey[]): void {
    if (keys.length === 0) return;
    const states = status(keys);
    for (const [index, key] of keys.entries()) {
      const one = watched.get(key);
      const now = states[index];
      if (one === undefined || now === undefined) continue;
      const seen = `${now.state}.${now.holder ?? ""}`;
      const news = seen !== one.seen && now.state !== "claimed";
      one.seen = seen;
      if (news) wakeAll(one);
    }
  }

  function stopIfUnwatched(): void {
    if (watched.size > 0) return;
    timer?.cancel();
    timer = undefined;
    unread = [];
  }

  function firstLook(): void {
    try {
      version = dataVersion();
    } catch {
      version = -1;
    }
    timer = systemClock.setTimer(look, LOOK_EVERY_MS, false);
  }

  function register(key: RecordKey, wake: WakeUp): Watch {
    // Registered twice it is woken twice: each registration is closed on its own.
    const own: WakeUp = () => wake();
    const one = watched.get(key) ?? { wakeUps: new Set(), seen: undefined };
    one.wakeUps.add(own);
    watched.set(key, one);
    watches += 1;
    if (timer === undefined && !closed) firstLook();
    return {
      close() {
        if (!one.wakeUps.delete(own)) return;
        watches -= 1;
        if (one.wakeUps.size === 0 && watched.get(key) === one) watched.delete(key);
        stopIfUnwatched();
      },
    };
  }

  return {
    // Too many: this one sees the change by reading from time to time, as if its wake-up were lost.
    watch: (key, wake) => (watches < MAX_WATCHES ? register(key, wake) : NOT_WATCHED),
    changed(key) {
      const one = watched.get(key);
      if (one !== undefined) wakeAll(one);
    },
    close() {
      closed = true;
      watched.clear();
      stopIfUnwatched();
    },
  };
}

function wakeAll({ wakeUps }: Watched): void {
  // A copy: whoever is woken may stop watching at once.
  for (const wake of [...wakeUps]) {
    try {
      wake();
    } catch {
      // One waiter's fault must neither keep the others asleep nor fail the write that woke them.
    }
  }
}
