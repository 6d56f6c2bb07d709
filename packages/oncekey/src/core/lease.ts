/**
 * @module
 * Keeps one claim alive while its work runs, and tells the work when it is lost.
 *
 * Invariants: the local deadline is the monotonic time at which the last successful renewal was *sent*, plus
 * the lease, minus a margin, so this process stops believing in its claim before anybody else may take it.
 * Renewal ends after `maxRunMs`. A lapsed claim that nobody replaced is still ours to extend and complete.
 *
 * Interleavings that have a test: the loop is blocked past the deadline; the process is frozen and another took
 * over; the record is gone (claimed again with the same token); the store is down for longer than the lease; an
 * operator took the claim; the answer to an extend arrives after the end.
 */
import { promised, started } from "./awaitable.js";
import type { Calls } from "./calls.js";
import type { Claiming } from "./claiming.js";
import type { Clock } from "./clock.js";
import { OncekeyError, unreachable } from "./errors.js";
import type { EventListener } from "./events.js";
import { pinClaim } from "./pinning.js";
import type { Alarm, Schedule } from "./schedule.js";
import type { ClaimRequest, Store } from "./store.js";

type LostReason = "replaced" | "not-renewed" | "ran-too-long";

export interface Lease {
  /** Fires when the claim is lost. A timer fires it: before an effect ask `assertHeld` or `confirm`. */
  signal(): AbortSignal;
  lost(): LostReason | undefined;
  /** @throws OncekeyError `LEASE_LOST` or `RUN_TOO_LONG`, at once and without asking the store. */
  assertHeld(): void;
  /** Renews first, then asserts. */
  confirm(): Promise<void>;
  /** Pins the claim in a transaction of the work's own. */
  guard(transaction: unknown): Promise<void>;
  /** Begins to renew, once the work has something to wait for: before, no renewal could be sent. */
  renew(): void;
  /** Stops renewing: the work has ended. */
  end(): void;
}

export interface LeaseDependencies {
  readonly store: Store;
  readonly calls: Calls;
  readonly claiming: Claiming;
  readonly clock: Clock;
  readonly beats: Schedule;
  readonly emit: EventListener;
}

export interface LeaseOptions {
  readonly claim: ClaimRequest;
  /** When the claim was sent, on the monotonic clock. */
  readonly claimedMs: number;
  readonly storeTimeoutMs: number;
  readonly maxRunMs: number;
  /** `false`: the work runs unprotected under a claim that may or may not have landed. */
  readonly protected: boolean;
  /** Another token has the key, or it is left to lapse: this run has no say in it any more. */
  readonly onGivenUp: () => void;
}

interface State extends LeaseOptions {
  readonly parts: LeaseDependencies;
  readonly startedMs: number;
  deadlineMs: number;
  reason: LostReason | undefined;
  aborter: AbortController | undefined;
  ended: boolean;
  alarm: Alarm | undefined;
}

export const BEATS_PER_LEASE = 3;
/** After a renewal that failed the next comes sooner: two more fit before the deadline. */
const RETRIES_PER_LEASE = 6;
/** The part of a lease that is not believed in, for the time an answer takes and clocks that run unevenly. */
const MARGIN = 0.1;

/** Holds a claim that was just won. */
export function holdLease(parts: LeaseDependencies, options: LeaseOptions): Lease {
  const { claim, claimedMs, storeTimeoutMs, maxRunMs, protected: isProtected, onGivenUp } = options;
  // Member by member: made of a spread, this object alone took longer than the rest of a claim (measured).
  const state: State = {
    parts,
    claim,
    claimedMs,
    storeTimeoutMs,
    maxRunMs,
    protected: isProtected,
    onGivenUp,
    startedMs: parts.clock.monotonicMs(),
    deadlineMs: claimedMs + claim.leaseMs * (1 - MARGIN),
    reason: undefined,
    aborter: undefined,
    ended: false,
    alarm: undefined,
  };
  return {
    signal: () => signalOf(state),
    lost: () => state.reason,
    assertHeld: () => assertHeld(state),
    async confirm() {
      if (state.reason !== undefined) throw lostError(state.reason);
      await extend(state, state.storeTimeoutMs);
      assertHeld(state);
    },
    guard: (transaction) => guard(state, transaction),
    renew: () => renew(state),
    end() {
      state.ended = true;
      state.alarm?.cancel();
    },
  };
}

/** A process that stood still between its claim and the first wait of its work has a renewal to make up for, at once. */
function renew(state: State): void {
  const { claim, claimedMs, ended, maxRunMs, parts } = state;
  const beatMs = claim.leaseMs / BEATS_PER_LEASE;
  if (ended) return;
  if (parts.clock.monotonicMs() - claimedMs < beatMs) beatAfter(state, Math.min(beatMs, maxRunMs));
  else void beat(state);
}

/** Made when first asked for: most work never looks, and a controller costs more than a claim. */
function signalOf(state: State): AbortSignal {
  if (state.aborter === undefined) {
    state.aborter = new AbortController();
    if (state.reason !== undefined) state.aborter.abort(lostError(state.reason));
  }
  return state.aborter.signal;
}

function assertHeld({ reason, parts, startedMs, maxRunMs, deadlineMs, protected: isProtected }: State): void {
  if (reason !== undefined) throw lostError(reason);
  const nowMs = parts.clock.monotonicMs();
  if (nowMs - startedMs >= maxRunMs) throw lostError("ran-too-long");
  if (nowMs >= deadlineMs && isProtected) throw lostError("not-renewed");
}

async function guard(state: State, transaction: unknown): Promise<void> {
  if (
    state.reason === undefined &&
    !(await pinClaim(state.parts, state.claim, state.storeTimeoutMs, transaction))
  ) {
    lose(state, "replaced");
  }
  if (state.reason !== undefined) throw lostError(state.reason);
}

function beatAfter(state: State, delayMs: number): void {
  state.alarm = state.parts.beats.after(delayMs, () => {
    void beat(state);
  });
}

async function beat(state: State): Promise<void> {
  const { parts, startedMs, maxRunMs, storeTimeoutMs } = state;
  const nowMs = parts.clock.monotonicMs();
  if (nowMs - startedMs >= maxRunMs) return lose(state, "ran-too-long");
  if (nowMs >= state.deadlineMs && state.protected) lose(state, "not-renewed");
  const timeoutMs =
    nowMs < state.deadlineMs ? Math.min(storeTimeoutMs, state.deadlineMs - nowMs) : storeTimeoutMs;
  let renewed = false;
  try {
    if (!(await extend(state, timeoutMs))) return;
    renewed = true;
  } catch {
    // `calls` has reported it; until the deadline the claim is still believed in.
  }
  if (!state.ended) beatAfter(state, untilNextMs(state, renewed));
}

function untilNextMs(
  { claim, parts, startedMs, maxRunMs, deadlineMs, reason }: State,
  renewed: boolean,
): number {
  const nowMs = parts.clock.monotonicMs();
  const restMs = Math.max(0, startedMs + maxRunMs - nowMs);
  const beatMs = claim.leaseMs / (renewed ? BEATS_PER_LEASE : RETRIES_PER_LEASE);
  if (renewed || reason !== undefined) return Math.min(beatMs, restMs);
  return Math.min(beatMs, restMs, Math.max(1, deadlineMs - nowMs));
}

/** One renewal; whether it is worth another. */
async function extend(state: State, timeoutMs: number): Promise<boolean> {
  const { claim, parts } = state;
  const { store, calls, clock } = parts;
  const { key, token, leaseMs, operation } = claim;
  const sentMs = clock.monotonicMs();
  const outcome = await calls.bounded("extend", operation, timeoutMs, () =>
    store.extend({ key, token, leaseMs }),
  );
  switch (outcome.kind) {
    case "extended":
      renewedAt(state, sentMs);
      return true;
    case "gone":
      return state.ended ? false : claimAgain(state, sentMs, timeoutMs);
    case "replaced":
      lose(state, "replaced");
      return false;
    case "unknown":
      return foundUnknown(state);
    case "completed":
      return false;
    default:
      return unreachable(outcome);
  }
}

/** The record was lost, not replaced: the same token may make it again. */
async function claimAgain(state: State, sentMs: number, timeoutMs: number): Promise<boolean> {
  const { claim, parts } = state;
  const { store, calls, claiming } = parts;
  // Should it land after the work has failed and was released, it is a claim that nobody uses.
  const ask = () =>
    claiming.watchOver(
      claim,
      started(() => promised(store.claim(claim))),
    );
  const outcome = await calls.bounded("claim", claim.operation, timeoutMs, ask);
  switch (outcome.kind) {
    case "claimed":
      renewedAt(state, sentMs);
      return true;
    case "full":
      return true;
    case "unknown":
      if (outcome.madeBy === claim.token) return foundUnknown(state);
      break;
    case "completed":
      // Its own completion has landed meanwhile.
      if (outcome.completedBy === claim.token) return false;
      break;
    case "in-flight":
    case "mismatch":
    case "exhausted":
      break;
    default:
      return unreachable(outcome);
  }
  lose(state, "replaced");
  return false;
}

/**
 * Somebody found it lapsed. Nobody runs it yet, and a completion is still taken; but it is not held: whoever is asked
 * what became of it may say that nothing happened.
 */
function foundUnknown(state: State): boolean {
  lose(state, "not-renewed");
  return true;
}

function renewedAt(state: State, sentMs: number): void {
  state.deadlineMs = Math.max(state.deadlineMs, sentMs + state.claim.leaseMs * (1 - MARGIN));
}

function lose(state: State, reason: LostReason): void {
  if (state.ended || state.reason === reason) return;
  // A claim that was not renewed in time can turn out to be replaced; whoever waits has to hear of that too.
  if (reason !== "not-renewed") state.onGivenUp();
  if (state.reason !== undefined) return;
  state.reason = reason;
  const { operation, key, token } = state.claim;
  state.parts.emit({ type: "lease-lost", operation, key, token, reason });
  state.aborter?.abort(lostError(reason));
}

function lostError(reason: LostReason): OncekeyError<"LEASE_LOST" | "RUN_TOO_LONG"> {
  switch (reason) {
    case "replaced":
      return new OncekeyError(
        "LEASE_LOST",
        "Another attempt has this claim now. Stop before the next effect.",
      );
    case "not-renewed":
      return new OncekeyError(
        "LEASE_LOST",
        "The claim could not be renewed in time, so another attempt may have started. Stop before the next effect.",
      );
    case "ran-too-long":
      return new OncekeyError(
        "RUN_TOO_LONG",
        "The work ran longer than maxRunMs; its claim is renewed no more.",
      );
    default:
      return unreachable(reason);
  }
}
