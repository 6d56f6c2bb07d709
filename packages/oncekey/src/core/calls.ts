/**
 * @module
 * Every call to the store goes through here, so that none is unbounded.
 *
 * Invariants: a call answers, or fails with `STORE_UNAVAILABLE`, within its time; a store that throws
 * synchronously, rejects late or never answers harms nobody. A call that was given up has an unknown result
 * and can land later: what to do about that is left to `claiming.ts` and `settlement.ts`.
 */
import { type Awaitable, promised, started } from "./awaitable.js";
import type { Clock } from "./clock.js";
import { isOncekeyError, OncekeyError } from "./errors.js";
import type { EventListener, StoreCall } from "./events.js";
import type { Alarm, Schedule } from "./schedule.js";

export interface Calls {
  /** Runs one call of the store; gives up after `timeoutMs`. */
  bounded<T>(name: StoreCall, operation: string, timeoutMs: number, call: () => Awaitable<T>): Promise<T>;
  /** The same, and an answer that is there at once is given at once. A failure is always a rejection. */
  ask<T>(name: StoreCall, operation: string, timeoutMs: number, call: () => Awaitable<T>): Awaitable<T>;
  /** The first of `pending` to answer, within `timeoutMs`; fails when all have failed. */
  first<T>(name: StoreCall, operation: string, timeoutMs: number, pending: readonly Promise<T>[]): Promise<T>;
}

export function createCalls(schedule: Schedule, emit: EventListener): Calls {
  function first<T>(
    name: StoreCall,
    operation: string,
    timeoutMs: number,
    pending: readonly Promise<T>[],
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let awaited = pending.length;
      const giveUp = (cause: unknown): void => {
        awaited = 0;
        reject(unavailable(name, cause));
        emit({ type: "store-down", operation, call: name, cause });
      };
      const alarm: Alarm = schedule.after(timeoutMs, () =>
        giveUp(new Error(`The store did not answer ${name} within ${timeoutMs} ms`)),
      );
      const answered = (answer: T): void => {
        alarm.cancel();
        awaited = 0;
        resolve(answer);
      };
      const failed = (cause: unknown): void => {
        // What fails after the end of the wait was reported by the wait itself.
        if (awaited === 0) return;
        awaited -= 1;
        if (isAnswer(cause)) {
          alarm.cancel();
          awaited = 0;
          reject(cause);
        } else if (awaited === 0) {
          alarm.cancel();
          giveUp(cause);
        }
      };
      for (const one of pending) one.then(answered, failed);
    });
  }

  function ask<T>(
    name: StoreCall,
    operation: string,
    timeoutMs: number,
    call: () => Awaitable<T>,
  ): Awaitable<T> {
    const answer = started(() => promised(call()));
    return answer instanceof Promise ? first(name, operation, timeoutMs, [answer]) : answer;
  }

  return {
    first,
    ask,
    bounded: async (name, operation, timeoutMs, call) => ask(name, operation, timeoutMs, call),
  };
}

/** Coded errors of a store are answers about the record; everything else means that it could not be asked. */
function isAnswer(error: unknown): boolean {
  return isOncekeyError(error) && error.code !== "STORE_UNAVAILABLE";
}

function unavailable(name: StoreCall, cause: unknown): OncekeyError<"STORE_UNAVAILABLE"> {
  if (isOncekeyError(cause, "STORE_UNAVAILABLE")) return cause;
  const message = `The idempotency store did not answer (${name}). Nothing is known about what it did; try again.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause });
}

/** Waits on `clock`; used between tries in the background. */
export function pause(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(resolve, delayMs, false);
  });
}
