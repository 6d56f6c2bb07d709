/**
 * @module
 * What becomes of a delivery: acknowledged, put back, or laid with the dead letters.
 *
 * Invariants: a pure translation of what the engine says, the same for every broker; every code of the library has its place
 * in one table. A delivery is acknowledged only if its work is done by this consumer, dead-lettered only if no later delivery
 * could go better, and put back otherwise, so that no message is lost and none goes round for ever at full speed. Carrying a
 * verdict out is left to the adapters.
 */
import type { Performed } from "../core/call.js";
import { decodeResult, type ResultCodec } from "../core/codec.js";
import { type ErrorCode, isOncekeyError, OncekeyError, unreachable } from "../core/errors.js";
import type { Settled } from "../core/function-results.js";
import type { ResolvedPolicy } from "../core/policy.js";
import type { StoredOutcome } from "../core/record.js";

/** Why a delivery comes again later. */
export type PutBackReason =
  /** Another delivery of the message is being handled, here or elsewhere. */
  | "in-flight"
  /** The handler threw, or returned what `keep` does not keep. */
  | "failed"
  /** Under at-most-once: nobody knows how the handler ended; the next delivery asks `onLapsed`. */
  | "outcome-unknown"
  | "commit-undecided"
  | "not-committed"
  | "store-unavailable"
  | "store-full"
  | "record-unreadable"
  /** Tables that are missing, a guarantee that the store has not: true of every message, so none is to be given up for it. */
  | "misconfigured"
  /** The instance is closing: another process takes the message. */
  | "closing"
  /** The handler did not end in time; it may still be running. */
  | "ran-too-long"
  /** Whoever delivered it has taken it back while it waited. */
  | "withdrawn";

/** Why a delivery is not tried again. */
export type DeadLetterReason =
  | "key-missing"
  | "key-invalid"
  | "scope-missing"
  | "scope-failed"
  | "input-unsupported"
  /** The key was used for a message with other content. */
  | "mismatch"
  | "outcome-unknown"
  | "attempts-exhausted"
  /** The handler threw what `keep` keeps: a failure that is final. */
  | "failed-for-good"
  /** The library refused the call; the error says why. */
  | "refused";

/** What is to be done with a delivery. */
export type Verdict<R = unknown> =
  /**
   * Acknowledge it. `repeat`: it was done before, and `result` is what the first run returned, or `undefined` if that was
   * nothing or could not be kept.
   */
  | {
      readonly kind: "done";
      readonly how: "executed" | "repeat" | "unprotected";
      readonly result: R | undefined;
    }
  /** Give it back to the broker, to be delivered again no sooner than after `delayMs`. */
  | {
      readonly kind: "put-back";
      readonly reason: PutBackReason;
      readonly delayMs: number;
      readonly error: unknown;
    }
  /** Lay it with the dead letters: no later delivery would go better. */
  | { readonly kind: "dead-letter"; readonly reason: DeadLetterReason; readonly error: unknown };

/** What a verdict depends on beside how the call ended. */
export interface Circumstances<R> {
  readonly policy: Pick<ResolvedPolicy, "maxAttempts" | "reconcile">;
  readonly backoff: Backoff;
  readonly result: ResultCodec<R> | undefined;
  /** How often the broker has delivered the message, this time included; 1 if it does not say. */
  readonly deliveries: number;
}

/** How long a delivery is put back for: `firstMs`, twice as long each time, `mostMs` in the end. */
export interface Backoff {
  readonly firstMs: number;
  readonly mostMs: number;
}

type Disposition = "done" | { readonly back: PutBackReason } | { readonly dead: DeadLetterReason };

/** What each code means for the delivery that met it. */
const OF_CODE = {
  ALREADY_COMPLETED: "done",
  RESULT_NOT_RETAINED: "done",
  IN_FLIGHT: { back: "in-flight" },
  CLAIM_LIVE: { back: "in-flight" },
  ATTEMPT_FAILED: { back: "failed" },
  STEP_IN_FLIGHT: { back: "failed" },
  NOT_PERFORMED: { back: "failed" },
  LEASE_LOST: { back: "failed" },
  RECORD_CHANGED: { back: "failed" },
  RETRY_TRANSACTION: { back: "failed" },
  TRANSACTION_ABORTED: { back: "failed" },
  RUN_TOO_LONG: { back: "ran-too-long" },
  NOT_COMMITTED: { back: "not-committed" },
  COMMIT_UNDECIDED: { back: "commit-undecided" },
  STORE_UNAVAILABLE: { back: "store-unavailable" },
  CAPACITY_EXCEEDED: { back: "store-full" },
  RECORD_UNREADABLE: { back: "record-unreadable" },
  CLOSING: { back: "closing" },
  KEY_MISSING: { dead: "key-missing" },
  KEY_INVALID: { dead: "key-invalid" },
  SCOPE_MISSING: { dead: "scope-missing" },
  SCOPE_FAILED: { dead: "scope-failed" },
  INPUT_UNSUPPORTED: { dead: "input-unsupported" },
  KEY_REUSED: { dead: "mismatch" },
  OUTCOME_UNKNOWN: { dead: "outcome-unknown" },
  ATTEMPTS_EXHAUSTED: { dead: "attempts-exhausted" },
  REQUEST_TOO_LARGE: { dead: "refused" },
  RESULT_TOO_LARGE: { dead: "refused" },
  KEY_REENTERED: { dead: "refused" },
  GUARANTEE_UNSUPPORTED: { back: "misconfigured" },
  TRANSACTION_CLOSED: { dead: "refused" },
  NOT_PROTECTED: { dead: "refused" },
  STEP_REFUSED: { dead: "refused" },
  CONFIGURATION_INVALID: { back: "misconfigured" },
} as const satisfies Record<ErrorCode, Disposition>;

/** A process that closes keeps what it puts back for so long at most: by then its channel is closed, or it was no end. */
const MOST_AT_CLOSE_MS = 5_000;
/** A claim that is about to lapse is not asked about in the very next millisecond. */
const LEAST_IN_FLIGHT_MS = 50;

/** The verdict on a call that was answered. */
export function verdictOn<R>(circumstances: Circumstances<R>, performed: Performed<Settled<R>>): Verdict<R> {
  switch (performed.kind) {
    case "replayed":
    case "superseded":
      return repeated(circumstances, performed.outcome);
    case "unprotected":
      if (performed.value.kind === "threw") return putBack(circumstances, "failed", performed.value.error);
      return { kind: "done", how: "unprotected", result: performed.value.value };
    case "executed":
      return executed(circumstances, performed);
    default:
      return unreachable(performed);
  }
}

/** The verdict on a call that was refused. Whatever is not one of the library's own errors says that nobody waits any more. */
export function verdictOnError<R>(circumstances: Circumstances<R>, error: unknown): Verdict<R> {
  if (!isOncekeyError(error)) return putBack(circumstances, "withdrawn", error);
  // A newer copy of the package may have codes that this one has not heard of.
  const disposition: Disposition =
    OF_CODE[error.code] ?? (error.retryable ? { back: "failed" } : { dead: "refused" });
  if (disposition === "done") return { kind: "done", how: "repeat", result: undefined };
  if ("dead" in disposition) return { kind: "dead-letter", reason: disposition.dead, error };
  return putBack(circumstances, disposition.back, error);
}

/** The handler is still running after the longest time that it may take. */
export function ranTooLong<R>(circumstances: Circumstances<R>, afterMs: number): Verdict<R> {
  const text = `The handler has not ended within ${afterMs} ms; its message is put back, and it may still be running.`;
  return verdictOnError(circumstances, new OncekeyError("RUN_TOO_LONG", text));
}

function executed<R>(
  circumstances: Circumstances<R>,
  { value, ending, attempt }: Extract<Performed<Settled<R>>, { readonly kind: "executed" }>,
): Verdict<R> {
  const { maxAttempts, reconcile } = circumstances.policy;
  const error = value.kind === "threw" ? value.error : undefined;
  switch (ending) {
    case "kept":
    case "pending":
      if (value.kind === "returned") return { kind: "done", how: "executed", result: value.value };
      return { kind: "dead-letter", reason: "failed-for-good", error };
    case "released":
      // The next delivery would be refused for it anyway; this one still knows what the handler threw.
      if (maxAttempts !== undefined && attempt >= maxAttempts) {
        return { kind: "dead-letter", reason: "attempts-exhausted", error };
      }
      return putBack(circumstances, "failed", error);
    case "unknown":
      if (reconcile !== undefined) return putBack(circumstances, "outcome-unknown", error);
      return { kind: "dead-letter", reason: "outcome-unknown", error };
    default:
      return unreachable(ending);
  }
}

/** A failure that is on record is one again: a crash between its completion and its dead letter must not lose it. */
function repeated<R>({ result }: Circumstances<R>, outcome: StoredOutcome): Verdict<R> {
  const decoded = decodeResult(outcome);
  switch (decoded.kind) {
    case "error":
      return { kind: "dead-letter", reason: "failed-for-good", error: decoded.error };
    case "tombstone":
      return { kind: "done", how: "repeat", result: undefined };
    case "value":
      return { kind: "done", how: "repeat", result: restored(result, decoded.value) };
    default:
      return unreachable(decoded);
  }
}

/** Done is done: a codec that cannot read what its older version wrote does not bring the message back. */
function restored<R>(codec: ResultCodec<R> | undefined, value: unknown): R | undefined {
  if (codec === undefined) return value as R;
  try {
    return codec.decode(value);
  } catch {
    return undefined;
  }
}

function putBack<R>(circumstances: Circumstances<R>, reason: PutBackReason, error: unknown): Verdict<R> {
  return { kind: "put-back", reason, delayMs: delayFor(circumstances, reason, error), error };
}

function delayFor<R>(
  { backoff: { firstMs, mostMs }, deliveries }: Circumstances<R>,
  reason: PutBackReason,
  error: unknown,
): number {
  const grownMs = Math.min(mostMs, firstMs * 2 ** (deliveries - 1));
  if (reason === "closing") return Math.min(mostMs, MOST_AT_CLOSE_MS);
  if (reason !== "in-flight" || !isOncekeyError(error)) return grownMs;
  return Math.min(grownMs, Math.max(error.remainingMs ?? mostMs, LEAST_IN_FLIGHT_MS));
}
