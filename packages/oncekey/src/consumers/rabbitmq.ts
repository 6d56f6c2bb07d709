/**
 * @module
 * What the clients of RabbitMQ share: how often a message came, and deliveries that are held before they go back.
 *
 * RabbitMQ has no "later": a delivery that is requeued comes again at once. So it is held unacknowledged for its delay first,
 * which needs no queue beside the own one and takes one place of the prefetch, the bound of what is held.
 *
 * Invariant: whatever is held goes back, at the end of its delay or when its channel or consumer ends, whichever is sooner.
 */
import type { Clock } from "../core/clock.js";

/** What is said to the broker of a delivery. `drop`: to the dead-letter exchange of its queue. */
export type Answer = "ack" | "requeue" | "drop";

/** Put on copies of a message: how often it had been delivered by then. */
export const DELIVERIES_HEADER = "x-oncekey-deliveries";
/** Quorum queues count how often a message came back to them. */
const COUNT_HEADER = "x-delivery-count";
/** A classic queue only says that it is not the first time; what comes again soon would be put back for the shortest time for ever. */
const REDELIVERED_BEFORE = 2;

/** How often the broker has delivered a message, this time included, as far as it says. */
export function deliveriesOf(headers: unknown, redelivered: boolean): number {
  const found = (headers ?? {}) as Readonly<Record<string, unknown>>;
  const before = countIn(found, COUNT_HEADER) ?? (redelivered ? REDELIVERED_BEFORE : 0);
  return before + (countIn(found, DELIVERIES_HEADER) ?? 0) + 1;
}

/** Headers come from the wire, where anybody may have put anything. */
function countIn(headers: Readonly<Record<string, unknown>>, name: string): number | undefined {
  const value = headers[name];
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

export interface Holds {
  /** Resolves after `delayMs`, or as soon as everything is let go. */
  hold(delayMs: number): Promise<void>;
  /** Lets go of all that is held, and holds nothing any more. */
  end(): void;
}

export function createHolds(clock: Clock): Holds {
  const held = new Set<() => void>();
  let ended = false;
  return {
    hold: (delayMs) =>
      new Promise((resolve) => {
        if (ended) {
          resolve();
          return;
        }
        const letGo = () => {
          timer.cancel();
          held.delete(letGo);
          resolve();
        };
        // What is held here is the broker's all the same: it keeps no process running.
        const timer = clock.setTimer(letGo, delayMs, false);
        held.add(letGo);
      }),
    end() {
      ended = true;
      for (const letGo of [...held]) letGo();
    },
  };
}

/** What is wrong with a signal that ends the holding. */
export function stoppingProblems(stopping: unknown): string[] {
  const signal = stopping as Partial<AbortSignal> | null | undefined;
  const fits = typeof signal?.aborted === "boolean" && typeof signal.addEventListener === "function";
  return stopping === undefined || fits ? [] : ["stopping must be an AbortSignal"];
}

/** Ends the holding with `stopping`. */
export function endWith(holds: Holds, stopping: AbortSignal | undefined): void {
  if (stopping?.aborted) holds.end();
  else stopping?.addEventListener("abort", () => holds.end(), { once: true });
}
