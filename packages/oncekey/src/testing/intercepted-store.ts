/**
 * @module
 * Stands between a store and whoever uses it: every call passes here first.
 *
 * Invariant: what is not a call about records (wake-ups, transactions, facts) is that of the store behind it, whatever kind of
 * object that is.
 */
import type { Store } from "../core/store.js";
import { STORE_METHODS, type StoreMethod } from "../core/store-checks.js";

/** Called instead of the store; `next` asks it. */
export type Interception = (request: unknown, next: () => Promise<unknown>) => Promise<unknown>;

const OPTIONAL = [
  "notices",
  "discard",
  "watch",
  "begin",
  "join",
  "pin",
] as const satisfies readonly (keyof Store)[];

type Ask = (request: unknown) => unknown;

/** @param intercept answers each call, in the place of the store or by asking it. */
export function interceptedStore<Tx, Held>(
  store: Store<Tx, Held>,
  intercept: (method: StoreMethod, ...call: Parameters<Interception>) => Promise<unknown>,
): Store<Tx, Held> {
  const calls = STORE_METHODS.map((method) => {
    const ask = (store[method] as Ask).bind(store);
    // A store that answers at once does not do so through somebody else.
    return [method, (request: unknown) => intercept(method, request, async () => ask(request))];
  });
  const optional = OPTIONAL.flatMap((name) => {
    const member = store[name] as Ask | undefined;
    return member === undefined ? [] : [[name, member.bind(store)]];
  });
  return {
    ...store,
    ...Object.fromEntries([...optional, ...calls]),
    name: store.name,
    traits: store.traits,
    close: () => store.close(),
  };
}
