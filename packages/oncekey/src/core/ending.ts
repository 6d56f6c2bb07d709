/**
 * @module
 * How an attempt ends: what its record learns, what those hear who wait for it here, and what its caller gets.
 *
 * Invariants: a failure frees the key only if the guarantee allows it; those who wait in this process hear what the
 * record says, not what the work promised; nothing that was sent under a released claim can bring the claim back.
 */
import type { Call, Ended, Performed } from "./call.js";
import { type Engine, type Here, leaveHere } from "./engine.js";
import { unreachable } from "./errors.js";
import type { Lease } from "./lease.js";
import type { ClaimToken, StoredOutcome } from "./record.js";
import type { Completion, Held } from "./settlement.js";
import type { ClaimRequest } from "./store.js";
import { type Answer, NOBODY } from "./waiting-room.js";

/** Work that has ended with a result to keep. */
export type Kept<E> = Extract<Ended<E>, { readonly kind: "kept" }>;

/** An attempt whose work is about to start. */
export interface Execution<E> {
  readonly call: Call<E>;
  readonly claim: ClaimRequest;
  readonly attempt: number;
  readonly here: Here;
  readonly protected: boolean;
  /** When the claim was sent, on the monotonic clock: its lease may count from then. */
  readonly claimedMs: number;
}

/** One whose work has started. */
export interface Running<E> extends Execution<E> {
  readonly lease: Lease;
  /** The work has said so: see `notPerformed` of its context. */
  nothingHappened: boolean;
  /** It has ended. */
  over: boolean;
}

export function leave<E>(engine: Engine, { claim, here }: Execution<E>): void {
  leaveHere(engine, claim.key, here);
}

/** The key is another's, or will be: who waits here waits for that one now. */
export function giveUp<E>(engine: Engine, execution: Execution<E>): void {
  leave(engine, execution);
  const { key, leaseMs } = execution.claim;
  engine.waiting.heldBy(key, { token: undefined, remainingMs: leaseMs, local: false });
}

export function heldOf({ claim, attempt, call }: Execution<unknown>): Held {
  return { claim, attempt, policy: call.policy };
}

/** Tells those who wait what the record says now, and the caller what that means for its own result. */
export function tell<E>(
  engine: Engine,
  execution: Execution<E>,
  completion: Completion,
  { value, outcome, notKept }: Pick<Kept<E>, "value" | "outcome" | "notKept">,
): Performed<E> {
  const { attempt, claim } = execution;
  switch (completion.kind) {
    case "stored":
      reportNotKept(engine, claim, notKept);
      settleRoom(engine, execution, outcome, claim.token);
      return { kind: "executed", value, attempt, ending: "kept" };
    case "pending":
      reportNotKept(engine, claim, notKept);
      settleRoom(engine, execution, outcome, claim.token);
      return { kind: "executed", value, attempt, ending: "pending" };
    case "superseded":
      settleRoom(engine, execution, completion.outcome, completion.by);
      return { kind: "superseded", value, attempt, outcome: completion.outcome };
    case "running-elsewhere":
      giveUp(engine, execution);
      return { kind: "executed", value, attempt, ending: "kept" };
    default:
      return unreachable(completion);
  }
}

function reportNotKept(
  engine: Engine,
  { operation, key, token }: ClaimRequest,
  reason: string | undefined,
): void {
  if (reason !== undefined) engine.emit({ type: "result-not-kept", operation, key, token, reason });
}

function settleRoom<E>(
  engine: Engine,
  execution: Execution<E>,
  outcome: StoredOutcome,
  completedBy: ClaimToken,
): void {
  leave(engine, execution);
  const answer: Answer = { kind: "completed", outcome, completedBy, compared: true };
  engine.waiting.settle(execution.claim.key, execution.claim.fingerprint, answer);
}

/** The work failed: free the key, or say that nobody knows, as the guarantee has it. */
export async function fail<V>(
  engine: Engine,
  running: Running<unknown>,
  { value, code, performed }: Extract<Ended<V>, { readonly kind: "failed" }>,
): Promise<Performed<V>> {
  const { attempt, call, claim, lease } = running;
  // A renewal that finds the record gone would claim it again, so there must be none from here on.
  lease.end();
  if (call.policy.guarantee === "at-most-once" && performed === "maybe") {
    await engine.settlement.markUnknown(heldOf(running), code);
    leave(engine, running);
    engine.waiting.heldBy(claim.key, NOBODY);
    return { kind: "executed", value, attempt, ending: "unknown" };
  }
  await release(engine, running, true, code);
  engine.waiting.released(claim.key, claim.token);
  return { kind: "executed", value, attempt, ending: "released" };
}

/** The key is free again. A claim of it that was given up as lost may still be on its way. */
export async function release(
  engine: Engine,
  running: Running<unknown>,
  started: boolean,
  code: string | undefined,
): Promise<void> {
  const { call, claim } = running;
  await engine.settlement.release(heldOf(running), started, code);
  if (engine.claiming.mayLand(claim)) engine.claiming.abandon(claim, call.policy.storeTimeoutMs);
  leave(engine, running);
}
