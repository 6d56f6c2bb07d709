/**
 * @module
 * Stands between an instance and its store: counts and notes calls, and lets a case do something else instead.
 */
import type { Store } from "../../core/store.js";

export type StoreMethod = "claim" | "extend" | "complete" | "release" | "markUnknown" | "status" | "resolve";

/** Called instead of the store; `next` asks the store. */
type Interception = (request: unknown, next: () => Promise<unknown>) => Promise<unknown>;
export type Interceptions = { readonly [Method in StoreMethod]?: Interception | undefined };

export interface NotedCall {
  readonly method: StoreMethod;
  readonly request: unknown;
}

const METHODS: readonly StoreMethod[] = [
  "claim",
  "extend",
  "complete",
  "release",
  "markUnknown",
  "status",
  "resolve",
];

/** @param noted gets every call that is made, in order. */
export function interceptedStore<Tx>(
  store: Store<Tx>,
  interceptions: Interceptions,
  noted: NotedCall[],
): Store<Tx> {
  const wrapped: Record<string, unknown> = {};
  for (const method of METHODS) {
    const ask = (store[method] as (request: unknown) => Promise<unknown>).bind(store);
    wrapped[method] = (request: unknown) => {
      noted.push({ method, request });
      const intercept = interceptions[method];
      return intercept === undefined ? ask(request) : intercept(request, () => ask(request));
    };
  }
  return { ...store, ...wrapped };
}
