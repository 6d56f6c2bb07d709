/**
 * @module
 * Waking those who wait for a record.
 *
 * MySQL tells nobody that a row has changed. What this process writes wakes its own waiters at once; for the rest the
 * watched keys are read, all together, and ever more rarely the longer they have been waited for: half of the time that
 * has passed, within bounds. So somebody who waits for a second costs eight reads, and a thousand who wait with it cost none.
 *
 * Invariants: at most one read at a time; registrations are bounded.
 */
import { systemClock, type Timer } from "../../core/clock.js";
import { DEFAULT_LIMITS } from "../../core/limits.js";
import type { RecordKey } from "../../core/record.js";
import type { KeyStatus, WakeUp, Watch } from "../../core/store.js";
import { MAX_STATUS } from "./lookups.js";

const SHORTEST_PAUSE_MS = 40;
const LONGEST_PAUSE_MS = 500;
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
  readonly sinceMs: number;
  lookAtMs: number;
  /** What was seen last, so that one change wakes once. */
  seen: string | undefined;
}

export function createWatchers(
  status: (keys: readonly RecordKey[]) => Promise<readonly KeyStatus[]>,
): Watchers {
  const watched = new Map<RecordKey, Watched>();
  let timer: Timer | undefined;
  let looking = false;
  let watches = 0;
  let closed = false;

  /** Sets the timer for whoever comes first. */
  function plan(): void {
    timer?.cancel();
    timer = undefined;
    if (closed || looking || watched.size === 0) return;
    let next = Number.POSITIVE_INFINITY;
    for (const { lookAtMs } of watched.values()) next = Math.min(next, lookAtMs);
    timer = systemClock.setTimer(() => void look(), next - systemClock.monotonicMs(), false);
  }

  async function look(): Promise<void> {
    looking = true;
    const nowMs = systemClock.monotonicMs();
    const due = [...watched].filter(([, { lookAtMs }]) => lookAtMs <= nowMs).slice(0, MAX_STATUS);
    for (const [, one] of due) {
      one.lookAtMs =
        nowMs + Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, (nowMs - one.sinceMs) / 2));
    }
    try {
      await wakeChanged(due, status);
    } catch {
      // A database that cannot be read wakes nobody: waiters have their own fallback, and it reports the fault.
    }
    looking = false;
    plan();
  }

  function register(key: RecordKey, wake: WakeUp): Watch {
    // Registered twice it is woken twice: each registration is closed on its own.
    const own: WakeUp = () => wake();
    const nowMs = systemClock.monotonicMs();
    const one = watched.get(key) ?? {
      wakeUps: new Set(),
      sinceMs: nowMs,
      lookAtMs: nowMs + SHORTEST_PAUSE_MS,
      seen: undefined,
    };
    one.wakeUps.add(own);
    watches += 1;
    if (!watched.has(key)) {
      watched.set(key, one);
      plan();
    }
    return {
      close() {
        if (!one.wakeUps.delete(own)) return;
        watches -= 1;
        if (one.wakeUps.size > 0 || watched.get(key) !== one) return;
        watched.delete(key);
        if (watched.size === 0) plan();
      },
    };
  }

  return {
    // Too many: this one sees the change by reading from time to time, as if its wake-up were lost.
    watch: (key, wake) => (watches < MAX_WATCHES && !closed ? register(key, wake) : NOT_WATCHED),
    changed(key) {
      const one = watched.get(key);
      if (one !== undefined) wakeAll(one);
    },
    close() {
      closed = true;
      watched.clear();
      plan();
    },
  };
}

/** Reads them, and wakes those that are not what they were. */
async function wakeChanged(
  due: readonly (readonly [RecordKey, Watched])[],
  status: (keys: readonly RecordKey[]) => Promise<readonly KeyStatus[]>,
): Promise<void> {
  const keys = due.map(([key]) => key);
  const found = await status(keys);
  for (const [index, [, one]] of due.entries()) {
    const now = found[index];
    if (now === undefined) continue;
    const seen = `${now.state}.${now.holder ?? ""}`;
    const news = seen !== one.seen && now.state !== "claimed";
    one.seen = seen;
    if (news) wakeAll(one);
  }
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
