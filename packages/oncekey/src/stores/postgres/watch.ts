/**
 * @module
 * Waking those who wait for a record.
 *
 * What this process ends wakes its own waiters at once. Other processes hear of it by `NOTIFY`, which is sent apart from the
 * statement that ended the claim: Postgres commits transactions that notify one after the other, under one lock for the whole
 * server. Keys that ended while one notification is on its way, or just after it, go together in the next.
 *
 * Invariants: whenever listening begins, for the first time or again, everybody who waits is woken, for what was said before
 * may have been missed; notifying delays and fails no call; registrations and what waits to be said are bounded.
 */
import { systemClock } from "../../core/clock.js";
import { DEFAULT_LIMITS } from "../../core/limits.js";
import type { RecordKey } from "../../core/record.js";
import type { WakeUp, Watch } from "../../core/store.js";
import { arrayOf } from "./codec.js";
import type { RunStatement } from "./connections.js";
import type { Statements } from "./statements.js";

export interface Watchers {
  watch(key: RecordKey, wake: WakeUp): Watch;
  /** This process has just ended a claim of `key`, or made it unknown. */
  ended(key: RecordKey): void;
  /** Another process has said something. */
  heard(payload: string): void;
  wakeEverybody(): void;
  close(): void;
}

/** One registration per key is the rule, so this is about as many keys as may be waited for. */
const MAX_WATCHES = DEFAULT_LIMITS.maxWaiters;
/** Waiting to be said. What is above is not said key by key: everybody is woken. */
const MAX_UNSAID = 10_000;
/** A payload has to be shorter than 8,000 bytes. */
const KEYS_PER_PAYLOAD = 150;
/** Between two notifications: who ends claims one by one (exactly-once work) would notify as often. */
const PAUSE_MS = 10;
const EVERYBODY = "*";

const NOT_WATCHED: Watch = { close() {} };

/** @param notifies whether anybody listens for what this process says. */
export function createWatchers(statements: Statements, run: RunStatement, notifies: boolean): Watchers {
  const watched = new Map<RecordKey, Set<WakeUp>>();
  let watches = 0;
  let unsaid = new Set<RecordKey>();
  let scheduled = false;
  let saying = false;
  let closed = false;

  function ended(key: RecordKey): void {
    unsaid.add(key);
    if (scheduled) return;
    scheduled = true;
    // Not inside the call that ended it: whoever is woken reads again, and shall see it.
    setImmediate(flush);
  }

  function flush(): void {
    scheduled = false;
    for (const key of unsaid) wakeAll(watched.get(key));
    if (!notifies) unsaid = new Set();
    else if (!saying && !closed) void say();
  }

  async function say(): Promise<void> {
    saying = true;
    while (unsaid.size > 0 && !closed) {
      const payloads = payloadsOf([...unsaid]);
      unsaid = new Set();
      // Only a hint, so a failure is nobody's: waiters also read from time to time.
      await run(statements.notify, [arrayOf(payloads)]).catch(() => undefined);
      await new Promise<void>((resolve) => void systemClock.setTimer(resolve, PAUSE_MS, false));
    }
    saying = false;
  }

  function register(key: RecordKey, wake: WakeUp): Watch {
    // Registered twice it is woken twice: each registration is closed on its own.
    const own: WakeUp = () => wake();
    const wakeUps = watched.get(key) ?? new Set();
    wakeUps.add(own);
    watched.set(key, wakeUps);
    watches += 1;
    return {
      close() {
        if (!wakeUps.delete(own)) return;
        watches -= 1;
        if (wakeUps.size === 0 && watched.get(key) === wakeUps) watched.delete(key);
      },
    };
  }

  function wakeEverybody(): void {
    for (const wakeUps of [...watched.values()]) wakeAll(wakeUps);
  }

  return {
    // Too many: this one sees the change by reading from time to time, as if its wake-up were lost.
    watch: (key, wake) => (watches < MAX_WATCHES && !closed ? register(key, wake) : NOT_WATCHED),
    ended,
    heard(payload) {
      if (payload === EVERYBODY) wakeEverybody();
      else for (const key of payload.split(" ")) wakeAll(watched.get(key as RecordKey));
    },
    wakeEverybody,
    close() {
      closed = true;
      watched.clear();
      unsaid = new Set();
    },
  };
}

function payloadsOf(keys: readonly RecordKey[]): readonly string[] {
  if (keys.length > MAX_UNSAID) return [EVERYBODY];
  const payloads: string[] = [];
  for (let from = 0; from < keys.length; from += KEYS_PER_PAYLOAD) {
    payloads.push(keys.slice(from, from + KEYS_PER_PAYLOAD).join(" "));
  }
  return payloads;
}

function wakeAll(wakeUps: ReadonlySet<WakeUp> | undefined): void {
  // A copy: whoever is woken may stop watching at once.
  for (const wake of [...(wakeUps ?? [])]) {
    try {
      wake();
    } catch {
      // One waiter's fault must neither keep the others asleep nor fail the write that woke them.
    }
  }
}
