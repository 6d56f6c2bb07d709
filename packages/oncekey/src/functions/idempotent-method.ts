/**
 * @module
 * `@Idempotent`: a method that is protected by a key, as a standard decorator and as a legacy one (`experimentalDecorators`).
 *
 * Invariants: one value serves both kinds, told apart by how they are called; the method keeps its `this`, be it static or not.
 */
import { configurationError } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import type { Guarantee } from "../core/record.js";
import type { GuaranteeOf } from "../core/work.js";
import {
  type AnyOptions,
  type ArgumentOptions,
  type Caller,
  callerWith,
  type ScopeOfArguments,
} from "./argument-options.js";
import { namedLike } from "./named-like.js";

/** An instance; or what finds it when the method is called, on the object that has the method where it was injected there. */
export type InstanceSource<I> = I | ((self: never) => I);

type AsyncMethod = (...args: never[]) => Promise<unknown>;

/** What a compiler says of a method that the functions among the options cannot be called for. */
interface Mismatch<A extends readonly unknown[]> {
  readonly "the method has to take": A;
}

/** `M`, if it takes what the options ask for. */
type Takes<M extends AsyncMethod, A extends readonly unknown[]> =
  Parameters<M> extends readonly [...A, ...unknown[]] ? M : Mismatch<A>;

/** Decorates methods that return a promise and take at least the parameters `A`. */
export interface IdempotentDecorator<A extends readonly unknown[]> {
  <M extends AsyncMethod>(method: M & Takes<M, A>, context: ClassMethodDecoratorContext): M;
  <M extends AsyncMethod>(
    target: object,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<M> & TypedPropertyDescriptor<Takes<M, A>>,
  ): TypedPropertyDescriptor<M>;
}

/**
 * Makes a method run unless the key of its arguments has a result already, and answer with the result. Inside,
 * `idempotency.currentWork()` is its work.
 *
 * The functions among the options are called with the arguments and the `this` of the method. Their parameters have to be
 * annotated, all alike: a decorator is typed before the method it stands on, and one that does not fit it does not compile.
 *
 * @param idempotency an instance, `() => instance`, or `(self) => instance` for one that was injected.
 * @throws OncekeyError `CONFIGURATION_INVALID`, when the class is made, with everything that is wrong with the options. A call
 * rejects as `run` does, and with what a function among the options throws.
 */
export function Idempotent<
  Tx,
  G extends Guarantee,
  Scoped extends boolean,
  Held,
  A extends readonly unknown[],
>(
  idempotency: InstanceSource<Idempotency<Tx, G, Scoped, Held>>,
  options: ArgumentOptions<A, unknown, NoInfer<GuaranteeOf<Tx>>> & ScopeOfArguments<Scoped, A>,
): IdempotentDecorator<A> {
  const source = idempotency as unknown as InstanceSource<Idempotency>;
  const call = callerWith(
    "Idempotent",
    options as AnyOptions,
    typeof source === "function" ? undefined : source,
  );
  const decorate = (method: unknown, context: unknown, descriptor?: PropertyDescriptor): unknown => {
    if (descriptor !== undefined) {
      return { ...descriptor, value: protect(source, call, descriptor.value) };
    }
    const { kind } = Object(context) as Partial<ClassMethodDecoratorContext>;
    return protect(source, call, kind === "method" ? method : undefined);
  };
  return decorate as IdempotentDecorator<A>;
}

function protect(source: InstanceSource<Idempotency>, call: Caller, method: unknown): unknown {
  if (typeof method !== "function") {
    throw configurationError("Idempotent", ["the decorator must stand on a method"]);
  }
  return namedLike(method, async function (this: unknown, ...args: unknown[]) {
    return call(instanceFor(source, this), this, args, () => Reflect.apply(method, this, args));
  });
}

function instanceFor(source: InstanceSource<Idempotency>, self: unknown): Idempotency {
  if (typeof source !== "function") return source;
  const found: Idempotency | undefined = source(self as never);
  if (typeof found?.run === "function") return found;
  throw configurationError("Idempotent", [
    "idempotency, the first argument, is a function and found no instance for this call",
  ]);
}
