/**
 * @module
 * Every bound of the library in one place, each with its reason.
 *
 * Invariant: no queue, wait, body or map grows without one of these.
 */

export const KIB = 1024;
export const MIB = 1024 * KIB;

export const DEFAULT_LIMITS = {
  /** The IETF draft leaves it open; 255 is what the large payment interfaces accept. */
  maxKeyLength: 255,
  /** What is read into memory to be fingerprinted; larger requests are refused or fingerprinted without their body. */
  maxRequestBytes: 1 * MIB,
  /** A larger result is given to its caller whole and kept as a tombstone. */
  maxResultBytes: 1 * MIB,
  /** Repeats of one key that wait in one process; more are told that it is in flight. */
  maxWaitersPerKey: 1_000,
  /** So that one caller's repeats cannot take every place. */
  maxWaitersPerScope: 2_000,
  /** A waiter costs a few hundred bytes and, over HTTP, a socket. */
  maxWaiters: 10_000,
  /** The longest wait that a client can ask for with `Prefer: wait`. */
  maxWaitMs: 30_000,
  /** Completions that failed and are being retried; more are reported as lost at once. */
  maxPendingCompletions: 1_000,
  maxPendingBytes: 64 * MIB,
  /** Claims whose answer never came and that are being released in the background. */
  maxAbandonedClaims: 1_000,
  /** Without a notification a waiter sees a change after at most this long. */
  waitFallbackMs: 500,
} as const;

export type Limits = { readonly [Name in keyof typeof DEFAULT_LIMITS]: number };
/** A limit that is `undefined` is not set. */
export type LimitOptions = { readonly [Name in keyof Limits]?: number | undefined };

/** Records a page of `list` may have. */
export const MAX_PAGE = 1_000;
/** Waiters answered in one turn of the event loop, so that a thousand of them do not hold up everybody else. */
export const WAKE_SLICE = 50;
/** Work that the database refused to commit is run again by `run` this often before the caller hears of it. */
export const COMMIT_REPEATS = 2;
/** A waiter that has seen this many attempts fail is told so instead of waiting on. */
export const FAILURES_SEEN = 2;
/** A duration longer than ten years is a slip of the unit. */
export const MAX_DURATION_MS = 10 * 365 * 86_400_000;
/** Keys that one call claims in a transaction of the caller's, whose rows it holds until the caller commits. */
export const MAX_JOINED_KEYS = 1_000;
/** Calls that wait for their turn in one transaction of the caller's. */
export const MAX_IN_LINE = 1_000;
/** Events of one transaction that are kept back until its caller has committed. */
export const MAX_KEPT_BACK_EVENTS = 10_000;
/** Steps of one attempt, each of which costs a record and two calls of the store. */
export const MAX_STEPS = 10_000;
/** Characters of a step's name, which stands in the record beside its operation's. */
export const MAX_STEP_NAME = 255;
