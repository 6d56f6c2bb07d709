/**
 * @module
 * The ways in which a call of a store can go wrong.
 *
 * The question behind each is whether the call landed: a rejection says nothing about it, and a call that
 * timed out may land long after its caller has gone on.
 */
import type { Clock } from "../core/clock.js";
import { unreachable } from "../core/errors.js";

/** Without an `error` the call fails as if the connection had been reset. */
export type Fault =
  /** Rejected; the store never saw it. */
  | { readonly kind: "reject"; readonly error?: unknown }
  /** It landed; the answer was lost. */
  | { readonly kind: "reject-after-landing"; readonly error?: unknown }
  /** Thrown instead of rejected, as a client may that is closed; the store never saw it. */
  | { readonly kind: "throw"; readonly error?: unknown }
  /** Never answered; the store never saw it. */
  | { readonly kind: "hang" }
  /** Never answered; it landed. */
  | { readonly kind: "hang-after-landing" }
  /** It landed at once; the answer takes its time. */
  | { readonly kind: "answer-late"; readonly afterMs: number }
  /** It lands, and is answered, only then. */
  | { readonly kind: "land-late"; readonly afterMs: number };

/** Makes the call go wrong as the fault says. */
export function applyFault<T>(fault: Fault, clock: Clock, call: () => Promise<T>): Promise<T> {
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => clock.setTimer(resolve, ms));
  switch (fault.kind) {
    case "throw":
      throw errorOf(fault);
    case "reject":
      return Promise.reject(errorOf(fault));
    case "reject-after-landing":
      return call().then(() => Promise.reject(errorOf(fault)));
    case "hang":
      return never();
    case "hang-after-landing":
      return call().then(never, never);
    case "answer-late": {
      const answer = call();
      // It is handled below, only later.
      answer.catch(() => undefined);
      return sleep(fault.afterMs).then(() => answer);
    }
    case "land-late":
      return sleep(fault.afterMs).then(call);
    default:
      return unreachable(fault);
  }
}

function errorOf({
  error = new Error("The connection was reset (a planned fault)"),
}: {
  readonly error?: unknown;
}) {
  return error;
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}
