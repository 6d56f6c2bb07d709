/**
 * @module
 * Whose turn it is: occurrences of one job, one after the other.
 *
 * A second record, keyed by the job alone, is claimed while an occurrence runs and free afterwards. It has a lease of its own, so
 * that a crash frees the turn as it frees the occurrence.
 *
 * Invariants: a turn is taken under the claim of an occurrence, and given back only when the occurrence's end is on record; the
 * work of an occurrence never starts without it. The turn is a claim like every other: who stands still for longer than its
 * lease has lost both.
 */
import { type ErrorCode, isOncekeyError, notPerformed } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import { GLOBAL_SCOPE } from "../core/key.js";
import type { RunOptions } from "../core/run.js";
import type { JobSettings } from "./options.js";

/** `otherwise`: what it means that the wait ran out. */
type WaitForTurn = "no-turn" | { readonly waitMs: number; readonly otherwise: "skip" | "give-up" };

export interface Turn {
  /**
   * Asked again (the database refused to commit, and the work is repeated) it is still ours.
   * @throws OncekeyError `NOT_PERFORMED` if it is not to be had in that time, or the store does not answer.
   */
  take(wait: WaitForTurn): Promise<"ours" | "taken">;
  /** Resolves when the record has heard of it. Never rejects. */
  giveBack(): Promise<void>;
}

/** The count of its starts means nothing: where the instance has `maxAttempts`, it must not run out. */
const NO_END = 1_000_000_000;
const PAUSE_MS = 100;
/** Occurrences that had their turns before this one count, for who waits, as attempts that failed. */
const GOES_ON: ReadonlySet<ErrorCode> = new Set(["IN_FLIGHT", "ATTEMPT_FAILED"]);

interface Held {
  readonly release: () => void;
  readonly ended: Promise<unknown>;
}

export function createTurn(idempotency: Idempotency, settings: JobSettings): Turn {
  let held: Held | undefined;
  return {
    async take(wait) {
      if (wait === "no-turn" || held !== undefined) return "ours";
      const taken = await waitFor(idempotency, settings, wait);
      if (taken === "taken") return taken;
      held = taken;
      return "ours";
    },
    async giveBack() {
      held?.release();
      await held?.ended;
      held = undefined;
    },
  };
}

async function waitFor(
  idempotency: Idempotency,
  settings: JobSettings,
  { waitMs, otherwise }: Exclude<WaitForTurn, "no-turn">,
): Promise<Held | "taken"> {
  const { clock } = idempotency.internals;
  const endsAtMs = clock.monotonicMs() + waitMs;
  for (;;) {
    try {
      return await hold(idempotency, settings, Math.max(0, endsAtMs - clock.monotonicMs()));
    } catch (error) {
      const isOver = clock.monotonicMs() >= endsAtMs;
      if (isOver && otherwise === "skip" && isOncekeyError(error, "IN_FLIGHT")) return "taken";
      if (isOver || !isOncekeyError(error) || !GOES_ON.has(error.code)) {
        throw notPerformed("The job's turn could not be taken.", error);
      }
    }
    await new Promise<void>((resolve) => {
      clock.setTimer(resolve, PAUSE_MS, false);
    });
  }
}

/** Claims the turn; the claim's work lasts until `release`. */
async function hold(
  { runWithOutcome, internals }: Idempotency,
  settings: JobSettings,
  waitMs: number,
): Promise<Held> {
  const { leaseMs, storeTimeoutMs, maxRunMs } = settings.policy;
  const options = {
    operation: `turn ${settings.job}`,
    key: "running",
    scope: GLOBAL_SCOPE,
    fingerprint: "off",
    guarantee: "at-least-once",
    onLapsed: "rerun",
    onStoreDown: "reject",
    onCompleted: "replay",
    onInFlight: waitMs > 0 ? { waitMs, onReleased: "takeover" } : "reject",
    maxAttempts: internals.policy.maxAttempts === undefined ? undefined : NO_END,
    // What is not kept is released, so that the key is free for the next occurrence.
    keep: () => false,
    leaseMs,
    storeTimeoutMs,
    maxRunMs,
  } as const satisfies RunOptions<void>;
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let ended: Promise<unknown> = released;
  await new Promise<void>((taken, refused) => {
    const work = (): Promise<void> => {
      taken();
      return released;
    };
    // Once it is taken, a refusal can only tell of its end.
    ended = runWithOutcome(options, work).then(() => undefined, refused);
  });
  return { release, ended };
}
