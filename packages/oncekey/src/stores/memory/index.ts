/**
 * @module
 * The store in the memory of one process.
 *
 * Invariant: each call is one transition of the core between two turns of the event loop, so it is atomic
 * without further ado. Bytes are copied when they come in and when they go out: whoever made or was given a
 * buffer may change it, and the record stays. Keeping records is left to `records.ts`, its bounds to `room.ts`.
 */
import type { Awaitable } from "../../core/awaitable.js";
import { OncekeyError } from "../../core/errors.js";
import { describeRecord, type RecordKey } from "../../core/record.js";
import type { Store } from "../../core/store.js";
import { currentRecord, statusOf } from "../../core/transitions.js";
import { createBodies } from "./bodies.js";
import { createCalls } from "./calls.js";
import { signsOfSeveralInstances } from "./instances.js";
import { type MemoryStoreOptions, settingsOf } from "./options.js";
import { pageOf } from "./pages.js";
import { createRecords, purgeExpired, recordOf } from "./records.js";
import { createSweep } from "./sweep.js";
import { createWatchers } from "./watchers.js";

export type { MemoryStoreOptions } from "./options.js";

/**
 * Keeps records in this process: for development, for tests, and for a service of which one process runs.
 *
 * Everything is forgotten when the process ends, and no other process sees it, so a restart or a second
 * instance may run work again. Bounded by count, by bytes and per scope; see the options.
 *
 * @example const idempotency = createIdempotency({ store: memoryStore() });
 * @throws OncekeyError `CONFIGURATION_INVALID` if an option is out of bounds.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store<never> {
  const settings = settingsOf(options);
  const { clock } = settings;
  const records = createRecords(settings.maxRecords);
  // Whole milliseconds are kept without a box each. A lease may so seem a millisecond short, never its holder's.
  const nowMs = (): number => Math.floor(clock.monotonicMs());
  const sweep = createSweep(records, settings, nowMs);
  const watchers = createWatchers();
  const bodies = createBodies();
  const { plan: planned } = sweep;
  const calls = createCalls({ records, settings, bodies, nowMs, planned, changed: watchers.changed });
  let closed = false;

  /** Answers at once; what `call` throws comes as a rejection, as from any store. */
  function now<R, A>(call: (request: R) => A): (request: R) => A | Promise<never> {
    return (request) => {
      if (closed) return Promise.reject(closedError());
      try {
        return call(request);
      } catch (error) {
        return Promise.reject(error);
      }
    };
  }

  function later<R, A>(call: (request: R) => Awaitable<A>): (request: R) => Promise<A> {
    const called = now(call);
    return async (request) => called(request);
  }

  return {
    name: "memory",
    traits: {
      forgetsOn: { processCrash: true, powerLoss: true, failover: false, eviction: settings.forgets },
      reach: "process",
    },
    warnings: [...signsOfSeveralInstances(), ...(settings.forgets ? [FORGETS_EARLY] : [])],
    claim: now(calls.claim),
    extend: now(calls.extend),
    complete: now(calls.complete),
    release: now(calls.release),
    markUnknown: later(calls.markUnknown),
    reconcile: later(calls.reconcile),
    resolve: later(calls.resolve),
    status: later((keys: readonly RecordKey[]) => {
      const now = nowMs();
      return keys.map((key) => statusOf(recordOf(records, key), now));
    }),
    watch: watchers.watch,
    find: later((key: RecordKey) => {
      const now = nowMs();
      const record = currentRecord(recordOf(records, key), now);
      return record && describeRecord(record, now);
    }),
    list: later((request) => pageOf(records, request, nowMs)),
    purge: later((limit) => purgeExpired(records, nowMs(), limit)),
    close() {
      closed = true;
      sweep.stop();
      watchers.close();
      records.slots.clear();
      return Promise.resolve();
    },
  };
}

const FORGETS_EARLY =
  'onFull is "forget-oldest-completed": a full store forgets completed keys before their retention ends, and their repeats run again';

function closedError(): OncekeyError {
  return new OncekeyError("STORE_UNAVAILABLE", "The store has been closed; nothing was changed.");
}
