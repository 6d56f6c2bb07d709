/**
 * @module
 * `idempotentFunction`: a function that is protected by a key wherever it is called.
 *
 * Invariant: it takes what the function takes, `this` included, and promises what the function returns.
 */
import { configurationError } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import type { Guarantee } from "../core/record.js";
import type { GuaranteeOf } from "../core/work.js";
import {
  type AnyOptions,
  type ArgumentOptions,
  callerWith,
  type ScopeOfArguments,
} from "./argument-options.js";
import { namedLike } from "./named-like.js";

/**
 * Makes of `fn` a function that runs it unless the key of its arguments has a result already, and answers with the result.
 * Inside, `idempotency.currentWork()` is its work.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` or `GUARANTEE_UNSUPPORTED`, when it is made, with everything that is wrong with
 * the options. A call rejects as `run` does, and with what a function among the options throws.
 */
export function idempotentFunction<
  Tx,
  G extends Guarantee,
  Scoped extends boolean,
  Held,
  This,
  A extends readonly unknown[],
  R,
>(
  idempotency: Idempotency<Tx, G, Scoped, Held>,
  options: NoInfer<ArgumentOptions<A, R, GuaranteeOf<Tx>> & ScopeOfArguments<Scoped, A>>,
  fn: (this: This, ...args: A) => R | Promise<R>,
): (this: This, ...args: A) => Promise<R> {
  if (typeof fn !== "function") {
    throw configurationError("Function", ["the function itself must be the third argument"]);
  }
  const instance = idempotency as unknown as Idempotency;
  const call = callerWith("Function", options as AnyOptions, instance);
  return namedLike(fn, function (this: This, ...args: A) {
    return call(instance, this, args, () => fn.apply(this, args as never));
  });
}
