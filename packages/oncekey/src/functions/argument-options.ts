/**
 * @module
 * Says of a call, by its arguments, what `run` has to be told: whose key it is, which, and what was asked.
 *
 * Invariants: options that could never make a valid call are refused when the function is made, all of them at once; what is
 * looked up in the arguments is looked up once for each call, before anything is claimed. Everything else is left to `run`.
 */
import { configurationError, OncekeyError } from "../core/errors.js";
import type { FunctionOptions } from "../core/function-results.js";
import type { Idempotency } from "../core/idempotency.js";
import type { KeyInput, Missing, ScopeValue } from "../core/key.js";
import { reportRefused } from "../core/outcome.js";
import type { Policy } from "../core/policy.js";
import { collectProblems, functionProblems, isOptions } from "../core/policy-checks.js";
import type { Guarantee } from "../core/record.js";
import { type Compared, RUN_NAMES, type RunOptions } from "../core/run.js";
import { callProblems } from "../core/run-checks.js";
import type { Work } from "../core/work.js";

/** A value, or what finds it in the arguments of a call. */
export type OfArguments<A extends readonly unknown[], T> = T | ((...args: A) => T);

/** What is the same in all calls of a function, and what its arguments say of each. */
export interface ArgumentOptions<A extends readonly unknown[], R = unknown, G extends Guarantee = Guarantee>
  extends Policy,
    FunctionOptions<R> {
  /** Names what is done, the same in every process and deploy: `"charge"`, `"orders.create"`. */
  readonly operation: string;
  /** What the caller repeats: an order id, say. Missing parts are refused with `KEY_MISSING`. */
  readonly key: OfArguments<A, KeyInput | Missing>;
  /** Whose key it is. `GLOBAL_SCOPE` if keys are unique over all callers. May be left out where the instance has one. */
  readonly scope?: OfArguments<A, KeyInput | ScopeValue | Missing>;
  /**
   * What was asked: a repeat with other input is refused with `KEY_REUSED`. Say it where an argument is no data (a connection, a
   * logger), or not part of what is asked.
   * @defaultValue the list of all arguments
   */
  readonly input?: ((...args: A) => unknown) | undefined;
  /** `"off"`: repeats are not compared. */
  readonly fingerprint?: "off" | undefined;
  readonly guarantee?: G | undefined;
  /** Ends this caller's wait for somebody else's attempt. The work itself has its own signal. */
  readonly signal?: OfArguments<A, AbortSignal | undefined>;
}

/** Whose key it is has to be said, unless the instance has said it for all. */
export type ScopeOfArguments<Scoped extends boolean, A extends readonly unknown[]> = Scoped extends true
  ? unknown
  : { readonly scope: OfArguments<A, KeyInput | ScopeValue | Missing> };

/** Options of any function, once its types have been checked. */
export type AnyOptions = ArgumentOptions<never[]>;

/** Makes one call: of the instance, with `this` and the arguments, and the function as it was. */
export type Caller = <R>(
  idempotency: Idempotency,
  self: unknown,
  args: readonly unknown[],
  fn: (work: Work) => R | Promise<R>,
) => Promise<R>;

/**
 * @param idempotency the instance, if it is known by now: then the policy is checked as well.
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 */
export function callerWith(what: string, options: AnyOptions, idempotency: Idempotency | undefined): Caller {
  const problems = optionProblems(options);
  if (problems.length === 0) collectProblems(problems, () => idempotency?.internals.policyFor(options));
  if (problems.length > 0) throw configurationError(what, problems);
  const { key, scope, input, signal, ...same } = options;
  return async (instance, self, args, fn) => {
    const found: RunOptions & { input?: unknown } = {
      ...same,
      key: said(key, self, args),
      ...("scope" in options ? { scope: scopeSaid(instance, options, self, args) } : {}),
      ...(same.fingerprint === "off" ? {} : { input: input === undefined ? args : said(input, self, args) }),
      ...(signal === undefined ? {} : { signal: said(signal, self, args) }),
    };
    return (await instance.run(found as RunOptions & Compared, fn)) as never;
  };
}

function optionProblems(options: unknown): string[] {
  if (!isOptions(options)) return ["options must be an object with operation, key and scope"];
  const { signal, input } = options;
  const alike = { ...options, input: undefined, signal: typeof signal === "function" ? undefined : signal };
  const problems = callProblems(alike, RUN_NAMES, optionProblems);
  if (!("key" in options)) problems.push("key is missing: a value, or a function of the arguments");
  return [...problems, ...functionProblems("input", input)];
}

function said<T>(of: OfArguments<never[], T>, self: unknown, args: readonly unknown[]): T {
  return typeof of === "function" ? Reflect.apply(of, self, args) : of;
}

function scopeSaid(
  { internals }: Idempotency,
  { scope, operation }: AnyOptions,
  self: unknown,
  args: readonly unknown[],
): KeyInput | ScopeValue | Missing {
  try {
    return said(scope, self, args);
  } catch (cause) {
    const error = new OncekeyError("SCOPE_FAILED", "The function that finds the scope threw.", { cause });
    reportRefused(internals.emit, operation, error);
    throw error;
  }
}
