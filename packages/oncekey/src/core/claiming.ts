/**
 * @module
 * Asks the store for a claim, and cleans up when the answer never comes.
 *
 * Invariants: a claim is asked at most twice with one token, within `storeTimeoutMs` in all. A call that was
 * given up can still land, also after another answer was had: the token of whoever does not use it is released in
 * the background until every such call has settled and one release after that was answered, bounded by one lease. So
 * no claim is left that nobody owns.
 */
import { type Awaitable, promised, started } from "./awaitable.js";
import type { Background } from "./background.js";
import type { Calls } from "./calls.js";
import { isOncekeyError } from "./errors.js";
import type { EventListener } from "./events.js";
import type { ClaimOutcome, ClaimRequest, Store } from "./store.js";

export interface Claiming {
  /** Rejects, with `STORE_UNAVAILABLE`, if nothing is known and what was sent may still land. */
  ask(request: ClaimRequest, storeTimeoutMs: number): Awaitable<ClaimOutcome>;
  /** Remembers, until it has settled, a call that would make a claim of this request's token if it landed late. */
  watchOver<T>(request: object, call: Awaitable<T>): Awaitable<T>;
  /** Whether a call that was given up may still make a claim of this request's token. */
  mayLand(request: ClaimRequest): boolean;
  /** Makes sure that a claim which nobody uses does not stay. Asked again for the same request it does nothing. */
  abandon(request: ClaimRequest, storeTimeoutMs: number): void;
  /** Gives back a claim that was won and is not used. Resolves when the store has had time to hear of it. */
  giveBack(request: ClaimRequest, storeTimeoutMs: number): Promise<void>;
}

export interface ClaimingDependencies {
  readonly store: Store;
  readonly calls: Calls;
  readonly background: Background;
  readonly emit: EventListener;
}

export function createClaiming({ store, calls, background, emit }: ClaimingDependencies): Claiming {
  /** How many calls of a request have not settled; those of a claim only once one of them was given up. */
  const unsettled = new WeakMap<object, number>();
  const abandoned = new WeakSet<ClaimRequest>();

  function watchOver<T>(request: object, call: Awaitable<T>): Awaitable<T> {
    if (!(call instanceof Promise)) return call;
    unsettled.set(request, (unsettled.get(request) ?? 0) + 1);
    const settled = (): void => {
      const left = (unsettled.get(request) ?? 1) - 1;
      if (left === 0) unsettled.delete(request);
      else unsettled.set(request, left);
    };
    call.then(settled, settled);
    return call;
  }

  /** The second time with the same token: if the first claim did land, this one finds it. */
  async function waitOrAskAgain(
    request: ClaimRequest,
    first: Promise<ClaimOutcome>,
    storeTimeoutMs: number,
  ): Promise<ClaimOutcome> {
    const { operation } = request;
    try {
      return await calls.first("claim", operation, storeTimeoutMs / 2, [first]);
    } catch (error) {
      if (!isOncekeyError(error, "STORE_UNAVAILABLE")) throw error;
      const second = started(() => promised(store.claim(request)));
      const both = [watchOver(request, first), watchOver(request, second)].map((call) =>
        Promise.resolve(call),
      );
      return await calls.first("claim", operation, storeTimeoutMs / 2, both);
    }
  }

  /** One release of a claim whose work never started. */
  function letGo({ key, token, operation, maxAttempts }: ClaimRequest, timeoutMs: number): Promise<boolean> {
    const keepAttempts = maxAttempts !== undefined;
    const release = () => store.release({ key, token, started: false, keepAttempts, code: undefined });
    return calls.bounded("release", operation, timeoutMs, release).then(
      () => true,
      () => false,
    );
  }

  function abandon(request: ClaimRequest, storeTimeoutMs: number): void {
    if (abandoned.has(request)) return;
    abandoned.add(request);
    const { key, token, operation, leaseMs } = request;
    const report = (state: "releasing" | "released" | "given-up"): void =>
      emit({ type: "claim-abandoned", operation, key, token, state });
    const attempt = async (): Promise<boolean> => {
      const settledBefore = !unsettled.has(request);
      return (await letGo(request, storeTimeoutMs)) && settledBefore;
    };
    report("releasing");
    background.add({
      attempt,
      forMs: leaseMs,
      bytes: 0,
      ended: (end) => report(end === "landed" ? "released" : "given-up"),
    });
  }

  return {
    ask(request, storeTimeoutMs) {
      const answer = started(() => promised(store.claim(request)));
      return answer instanceof Promise ? waitOrAskAgain(request, answer, storeTimeoutMs) : answer;
    },
    watchOver,
    mayLand: (request) => unsettled.has(request),
    abandon,
    async giveBack(request, storeTimeoutMs) {
      const released = await letGo(request, storeTimeoutMs);
      if (!released || unsettled.has(request)) abandon(request, storeTimeoutMs);
    },
  };
}
