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
import type { Calls } from "./calls.js";
import type { Clock } from "./clock.js";
import { OncekeyError, unreachable } from "./errors.js";
import type { EventListener } from "./events.js";
import type { Alarm, Schedule } from "./schedule.js";
import type { ClaimRequest, Store } from "./store.js";

export type LostReason = "replaced" | "not-renewed" | "ran-too-long";

export interface Lease {
  /** Fires when the claim is lost. A timer fires it: before an effect ask `assertHeld` or `confirm`. */
  signal(): AbortSignal;
  lost(): LostReason | undefined;
  /** @throws OncekeyError `LEASE_LOST` or `RUN_TOO_LONG`, at once and without asking the store. */
  assertHeld(): void;
  /** Renews first, then asserts. */
  confirm(): Promise<void>;
  /** Stops renewing: the work has ended. */
  end(): void;
}

export interface LeaseDependencies {
  readonly store: Store;
  readonly calls: Calls;
  readonly clock: Clock;
  readonly beats: Schedule;
  readonly emit: EventListener;
}

export interface LeaseOptions {
  readonly claim: ClaimRequest;
  readonly storeTimeoutMs: number;
  readonly maxRunMs: number;
  /** `false`: the work runs unprotected under a claim that may or may not have landed. */
  readonly protected: boolean;
  /** Another token has the key. */
  readonly onReplaced: () => void;
}

const BEATS_PER_LEASE = 3;
const RETRIES_PER_LEASE = 6;
const MARGIN = 0.1;

export function holdLease(
  { store, calls, clock, beats, emit }: LeaseDependencies,
  { claim, storeTimeoutMs, maxRunMs, protected: isProtected, onReplaced }: LeaseOptions,
): Lease {
  const { key, token, leaseMs, operation } = claim;
  const startedMs = clock.monotonicMs();
  let deadlineMs = startedMs + leaseMs * (1 - MARGIN);
  let reason: LostReason | undefined;
  let aborter: AbortController | undefined;
  let ended = false;
  let alarm: Alarm | undefined;

  function lose(why: LostReason): void {
    if (ended || reason !== undefined) return;
    reason = why;
    emit({ type: "lease-lost", operation, key, token, reason: why });
    aborter?.abort(lostError(why));
    if (why === "replaced") onReplaced();
  }

  function renewedAt(sentMs: number): void {
    deadlineMs = Math.max(deadlineMs, sentMs + leaseMs * (1 - MARGIN));
  }

  /** One renewal; whether it is worth another. */
  async function extend(timeoutMs: number): Promise<boolean> {
    const sentMs = clock.monotonicMs();
    const outcome = await calls.bounded("extend", operation, timeoutMs, () =>
      store.extend({ key, token, leaseMs }),
    );
    switch (outcome.kind) {
      case "extended":
        renewedAt(sentMs);
        return true;
      case "gone":
        return claimAgain(sentMs, timeoutMs);
      case "replaced":
        lose("replaced");
        return false;
      case "unknown":
        // Somebody found it lapsed. Nobody runs it yet, and a completion is still taken, but it is not held.
        return true;
      case "completed":
        return false;
      default:
        return unreachable(outcome);
    }
  }

  /** The record was lost, not replaced: the same token may make it again. */
  async function claimAgain(sentMs: number, timeoutMs: number): Promise<boolean> {
    const outcome = await calls.bounded("claim", operation, timeoutMs, () => store.claim(claim));
    if (outcome.kind === "claimed") renewedAt(sentMs);
    else if (outcome.kind !== "full") lose("replaced");
    return outcome.kind === "claimed" || outcome.kind === "full";
  }

  function untilNextMs(renewed: boolean, nowMs: number): number {
    const restMs = Math.max(0, startedMs + maxRunMs - nowMs);
    const beatMs = leaseMs / (renewed ? BEATS_PER_LEASE : RETRIES_PER_LEASE);
    if (renewed || reason !== undefined) return Math.min(beatMs, restMs);
    return Math.min(beatMs, restMs, Math.max(1, deadlineMs - nowMs));
  }

  async function beat(): Promise<void> {
    const nowMs = clock.monotonicMs();
    if (nowMs - startedMs >= maxRunMs) return lose("ran-too-long");
    if (nowMs >= deadlineMs && isProtected) lose("not-renewed");
    const timeoutMs = nowMs < deadlineMs ? Math.min(storeTimeoutMs, deadlineMs - nowMs) : storeTimeoutMs;
    let renewed = false;
    try {
      if (!(await extend(timeoutMs))) return;
      renewed = true;
    } catch {
      // `calls` has reported it; until the deadline the claim is still believed in.
    }
    if (!ended) next(untilNextMs(renewed, clock.monotonicMs()));
  }

  function next(delayMs: number): void {
    alarm = beats.after(delayMs, () => {
      void beat();
    });
  }

  function assertHeld(): void {
    if (reason !== undefined) throw lostError(reason);
    const nowMs = clock.monotonicMs();
    if (nowMs - startedMs >= maxRunMs) throw lostError("ran-too-long");
    if (nowMs >= deadlineMs && isProtected) throw lostError("not-renewed");
  }

  next(Math.min(leaseMs / BEATS_PER_LEASE, maxRunMs));
  return {
    signal() {
      if (aborter === undefined) {
        aborter = new AbortController();
        if (reason !== undefined) aborter.abort(lostError(reason));
      }
      return aborter.signal;
    },
    lost: () => reason,
    assertHeld,
    async confirm() {
      if (reason !== undefined) throw lostError(reason);
      await extend(storeTimeoutMs);
      assertHeld();
    },
    end() {
      ended = true;
      alarm?.cancel();
    },
  };
}

function lostError(reason: LostReason): OncekeyError<"LEASE_LOST" | "RUN_TOO_LONG"> {
  switch (reason) {
    case "replaced":
      return new OncekeyError(
        "LEASE_LOST",
        "Another attempt has taken this claim over. Stop before the next effect.",
      );
    case "not-renewed":
      return new OncekeyError(
        "LEASE_LOST",
        "The claim could not be renewed in time, so another attempt may have started. Stop before the next effect.",
      );
    case "ran-too-long":
      return new OncekeyError(
        "RUN_TOO_LONG",
        "The work ran longer than maxRunMs, so its claim is renewed no more.",
      );
    default:
      return unreachable(reason);
  }
}
