/**
 * @module
 * Everything that can be observed, as one union. Logs, metrics, traces and consoles read only these.
 *
 * Invariant: an event holds no key, scope, input, result or message of the work in clear; it names a record by its digest.
 * A listener that throws changes nothing. What to do with events is left to whoever listens.
 */
import type { ErrorCode } from "./errors.js";
import { dropped } from "./promises.js";
import type { ClaimToken, RecordKey } from "./record.js";

/** How a call ended: the label of the one counter to keep. */
export type CallOutcome =
  | "executed"
  | "replayed"
  | "replayed_after_wait"
  | "released"
  | "conflict"
  | "wait_timeout"
  | "rejected"
  | "fingerprint_mismatch"
  | "missing_key"
  | "invalid_key"
  | "missing_scope"
  | "store_failure"
  | "lease_lost"
  | "outcome_unknown"
  | "passthrough";

/** Which call of the store it was. */
export type StoreCall =
  | "claim"
  | "extend"
  | "complete"
  | "release"
  | "markUnknown"
  | "reconcile"
  | "resolve"
  | "status"
  | "find"
  | "list"
  | "commit"
  | "rollback"
  | "pin"
  | "discard";

interface OfOperation {
  readonly operation: string;
}

interface OfRecord extends OfOperation {
  readonly key: RecordKey;
  readonly token: ClaimToken;
}

export type IdempotencyEvent =
  /** The work starts under this claim. `takeover`: an earlier attempt's lease lapsed. */
  | (OfRecord & { readonly type: "claimed"; readonly attempt: number })
  | (OfRecord & { readonly type: "takeover"; readonly attempt: number })
  /** The result is on record. `late`: only some time after its caller had it. */
  | (OfRecord & {
      readonly type: "completed";
      readonly attempt: number;
      readonly tombstone: boolean;
      readonly how: "stored" | "late";
    })
  | (OfRecord & { readonly type: "released"; readonly attempt: number; readonly code: string | undefined })
  | (OfRecord & {
      readonly type: "outcome-unknown";
      readonly attempt: number;
      readonly code: string | undefined;
    })
  /** The claim is another's, or could not be renewed in time, or ran longer than `maxRunMs`. */
  | (OfRecord & { readonly type: "lease-lost"; readonly reason: "replaced" | "not-renewed" | "ran-too-long" })
  /** The work succeeded and its completion did not land. `willRetry`: it is being tried again. */
  | (OfRecord & { readonly type: "completion-failed"; readonly willRetry: boolean; readonly cause: unknown })
  /**
   * It will not be tried again. `replaced`: another token has the key now, so the work runs again; otherwise it may,
   * under at-least-once, once its lease has lapsed.
   */
  | (OfRecord & {
      readonly type: "completion-lost";
      readonly reason: "out-of-time" | "out-of-room" | "closed" | "replaced" | "unreadable";
    })
  /** Two runs finished. The record keeps the other's result; somebody may have to refund one. */
  | (OfRecord & {
      readonly type: "superseded";
      readonly by: ClaimToken;
      readonly digest: string;
      readonly byDigest: string;
    })
  /** A result could not be kept, for this reason: repeats learn that it is done, not what it was. */
  | (OfRecord & { readonly type: "result-not-kept"; readonly reason: string })
  /** The work ran without a claim, because the store did not answer. */
  | (OfRecord & { readonly type: "unprotected"; readonly cause: unknown })
  | (OfRecord & { readonly type: "transaction-unused" })
  | (OfRecord & { readonly type: "not-committed"; readonly reason: string; readonly willRepeat: boolean })
  /** A claim that got no answer is being released in the background; `given-up`: it was left to lapse. */
  | (OfRecord & { readonly type: "claim-abandoned"; readonly state: "releasing" | "released" | "given-up" })
  | (OfOperation & { readonly type: "replayed"; readonly key: RecordKey; readonly waitedMs: number })
  | (OfOperation & {
      readonly type: "waited";
      readonly key: RecordKey;
      readonly waitedMs: number;
      readonly result:
        | "answered"
        | "timed-out"
        | "attempt-failed"
        | "unknown"
        | "crowded"
        | "left"
        | "failed";
    })
  | (OfOperation & { readonly type: "mismatch"; readonly key: RecordKey })
  /** The two fingerprints were made by different rules, so the repeat was not compared. */
  | (OfOperation & { readonly type: "fingerprint-skipped"; readonly key: RecordKey })
  | (OfOperation & {
      readonly type: "rejected";
      readonly key: RecordKey | undefined;
      readonly code: ErrorCode;
      /** What was thrown in a function of the application, or by the store; `undefined` where nothing was. */
      readonly cause: unknown;
    })
  | (OfOperation & {
      readonly type: "reconciled";
      readonly key: RecordKey;
      readonly verdict: "done" | "not-done" | "unknown";
      readonly cause: unknown;
    })
  | (OfOperation & { readonly type: "store-down"; readonly call: StoreCall; readonly cause: unknown })
  /** Somebody changed a record by hand. */
  | (OfOperation & {
      readonly type: "operator";
      readonly key: RecordKey;
      readonly action: "release" | "forget" | "resolve";
      readonly by: string;
      readonly reason: string;
    })
  /** A planned firing of a job has come to its end, for this process. */
  | (OfOperation & {
      readonly type: "occurrence";
      readonly plannedAtMs: number;
      readonly end: "executed" | "elsewhere" | "skipped" | "in-flight" | "missed" | "closing" | "given-up";
      /** Why it was given up. */
      readonly cause: unknown;
    })
  /** Once per call, whatever became of it. */
  | (OfOperation & {
      readonly type: "finished";
      readonly key: RecordKey | undefined;
      readonly outcome: CallOutcome;
      readonly tookMs: number;
      readonly waitedMs: number;
    })
  /**
   * Another server holds the records than before, restarted or promoted in a failover, and may lack the last of them: a key
   * that was claimed or completed just before may run again.
   */
  | { readonly type: "store-replaced"; readonly text: string }
  | { readonly type: "warning"; readonly text: string };

/** Takes events as they happen, synchronously: it has to be quick, and what it throws is dropped. */
export type EventListener = (event: IdempotencyEvent) => void;

/** Gives every event to `listener`, which cannot harm whoever emits. */
export function emitterOf(listener: EventListener | undefined): EventListener {
  if (listener === undefined) return () => undefined;
  return (event) => {
    try {
      // An async function fits the type of a listener; what it throws comes as a rejection.
      dropped(listener(event));
    } catch {
      // An observer's fault must not become the caller's.
    }
  };
}
