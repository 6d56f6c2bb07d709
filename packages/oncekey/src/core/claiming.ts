/**
 * @module
 * Asks the store for a claim, and cleans up when the answer never comes.
 *
 * Invariants: a claim is asked at most twice with one token, within `storeTimeoutMs` in all. A call that was
 * given up can still land: its token is released in the background until every such call has settled and one
 * release after that was answered, bounded by one lease. So no claim is left that nobody owns.
 */
import type { Background } from "./background.js";
import { type Calls, started } from "./calls.js";
import { isOncekeyError } from "./errors.js";
import type { EventListener } from "./events.js";
import type { ClaimOutcome, ClaimRequest, Store } from "./store.js";

export interface Claiming {
  /**
   * @throws OncekeyError `STORE_UNAVAILABLE`: nothing is known, and what was sent may still land.
   */
  ask(request: ClaimRequest, storeTimeoutMs: number): Promise<ClaimOutcome>;
  /** Makes sure that a claim which was given up does not stay. */
  abandon(request: ClaimRequest, storeTimeoutMs: number): void;
}

export interface ClaimingDependencies {
  readonly store: Store;
  readonly calls: Calls;
  readonly background: Background;
  readonly emit: EventListener;
}

export function createClaiming({ store, calls, background, emit }: ClaimingDependencies): Claiming {
  /** Requests that were asked twice, until both calls have settled. */
  const unsettled = new WeakSet<ClaimRequest>();

  function send(request: ClaimRequest): Promise<ClaimOutcome> {
    return started(() => store.claim(request));
  }

  function remember(request: ClaimRequest, sent: readonly Promise<unknown>[]): void {
    unsettled.add(request);
    void Promise.allSettled(sent).then(() => unsettled.delete(request));
  }

  return {
    async ask(request, storeTimeoutMs) {
      const { operation } = request;
      const first = send(request);
      try {
        return await calls.first("claim", operation, storeTimeoutMs / 2, [first]);
      } catch (error) {
        if (!isOncekeyError(error, "STORE_UNAVAILABLE")) throw error;
        // The same token again: if the first did land, this one finds its own claim.
        const second = send(request);
        remember(request, [first, second]);
        return await calls.first("claim", operation, storeTimeoutMs / 2, [first, second]);
      }
    },
    abandon(request, storeTimeoutMs) {
      const { key, token, operation, leaseMs, maxAttempts } = request;
      const keepAttempts = maxAttempts !== undefined;
      const release = () => store.release({ key, token, started: false, keepAttempts, code: undefined });
      const attempt = async (): Promise<boolean> => {
        const settledBefore = !unsettled.has(request);
        const answered = await calls.bounded("release", operation, storeTimeoutMs, release).then(
          () => true,
          () => false,
        );
        return settledBefore && answered;
      };
      emit({ type: "claim-abandoned", operation, key, token, state: "releasing" });
      background.add({
        attempt,
        forMs: leaseMs,
        bytes: 0,
        ended: (end) =>
          emit({
            type: "claim-abandoned",
            operation,
            key,
            token,
            state: end === "landed" ? "released" : "given-up",
          }),
      });
    },
  };
}
