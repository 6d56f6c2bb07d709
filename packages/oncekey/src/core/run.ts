/**
 * @module
 * `run`: any function, protected by a key.
 *
 * Invariants: only the caller whose function ran gets its result itself; everybody else gets a copy through the
 * codec, exactly what a replay would give. A result that cannot be kept never becomes an error of its caller.
 */
import type { Awaitable } from "./awaitable.js";
import type { Call, Performed } from "./call.js";
import { configurationError, isOncekeyError, OncekeyError } from "./errors.js";
import type { EventListener } from "./events.js";
import { fingerprintValue, NO_FINGERPRINT } from "./fingerprint.js";
import {
  encodeDone,
  type FunctionOptions,
  outcomeOf,
  type RunOutcome,
  runFunction,
  type Settled,
} from "./function-results.js";
import {
  identify,
  isUnusable,
  KEY_INPUT,
  type KeyInput,
  type Missing,
  partsOf,
  type ScopeValue,
  scopeValueOf,
} from "./key.js";
import { COMMIT_REPEATS } from "./limits.js";
import { reportRefused } from "./outcome.js";
import { POLICY_NAMES, type Policy, type ResolvedPolicy } from "./policy.js";
import { collectProblems } from "./policy-checks.js";
import type { Guarantee } from "./record.js";
import { callProblems } from "./run-checks.js";
import type { Work } from "./work.js";

/** What identifies one call of an operation, and what its caller wants of it. */
export interface RunOptions<R = unknown, G extends Guarantee = Guarantee> extends Policy, FunctionOptions<R> {
  /** Names what is done, the same in every process and deploy: `"charge"`, `"orders.create"`. */
  readonly operation: string;
  /** What the caller repeats: an order id, say. Missing parts are refused with `KEY_MISSING`. */
  readonly key: KeyInput | Missing;
  /** Whose key it is. `GLOBAL_SCOPE` if keys are unique over all callers. */
  readonly scope?: KeyInput | ScopeValue | Missing;
  /** What was asked: a repeat with other input is refused with `KEY_REUSED`. */
  readonly input?: unknown;
  /** `"off"`: repeats are not compared. */
  readonly fingerprint?: "off" | undefined;
  readonly guarantee?: G | undefined;
  /** Ends this caller's wait for somebody else's attempt. The work itself gets its own signal. */
  readonly signal?: AbortSignal | undefined;
}

/** `input` says what repeats are compared by; leaving it out has to be said. (The compiler names what stands last.) */
export type Compared = { readonly fingerprint: "off" } | { readonly input: unknown };
/** A call says whose key it is, unless the instance has said it for all. */
export type ScopeSaid<Scoped extends boolean> = Scoped extends true
  ? unknown
  : { readonly scope: KeyInput | ScopeValue | Missing };

/** Every option there is: another name is a misspelling, which would be a default in silence. */
export const RUN_NAMES: ReadonlySet<string> = new Set([
  ...POLICY_NAMES,
  ...([
    "operation",
    "key",
    "scope",
    "input",
    "fingerprint",
    "signal",
    "result",
    "onTombstone",
  ] satisfies Exclude<keyof RunOptions, keyof Policy>[]),
]);

/** What makes a call of options, and what it needs of its instance. */
export interface Identifying {
  readonly namespace: string;
  readonly policyFor: (...layers: readonly Policy[]) => ResolvedPolicy;
  readonly defaultScope: () => ScopeValue;
  readonly emit: EventListener;
}

export interface RunContext extends Identifying {
  readonly perform: <E>(call: Call<E>) => Awaitable<Performed<E>>;
}

export async function runWithOutcome<R>(
  context: RunContext,
  options: RunOptions<R>,
  fn: (work: Work) => R | Promise<R>,
): Promise<RunOutcome<R>> {
  return outcomeOf(options, await context.perform(callOf(context, options, fn)));
}

/**
 * A call of a function, as the engine takes it.
 *
 * @param names every option that this kind of call takes.
 * @throws OncekeyError for a call that is not valid, or has no key or scope.
 */
export function callOf<R>(
  context: Identifying,
  options: RunOptions<R>,
  fn: (work: Work) => R | Promise<R>,
  names = RUN_NAMES,
): Call<Settled<R>> {
  const policy = checkedPolicy(context, options, fn, names);
  return {
    ...identified(context, options, policy),
    policy,
    signal: () => options.signal,
    carrier: undefined,
    waitMs: undefined,
    commitRepeats: COMMIT_REPEATS,
    run: (begun) => runFunction(context.emit, options, policy, fn, begun.work()),
    encodeDone: (result) => encodeDone(options.result, policy.maxResultBytes, result),
  };
}

/** @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the call and with its policy. */
function checkedPolicy(
  context: Identifying,
  options: RunOptions,
  fn: unknown,
  names: ReadonlySet<string>,
): ResolvedPolicy {
  const problems = callProblems(options, names, fn);
  const policy = collectProblems(problems, () => context.policyFor(options));
  if (policy === undefined || problems.length > 0) throw configurationError("Call", problems);
  return policy;
}

/** A call that cannot be identified is counted like every other. */
function identified(context: Identifying, options: RunOptions, policy: ResolvedPolicy) {
  try {
    return identityOf(context, options, policy);
  } catch (error) {
    if (isOncekeyError(error)) reportRefused(context.emit, options.operation, error);
    throw error;
  }
}

function identityOf(context: Identifying, options: RunOptions, policy: ResolvedPolicy) {
  const { operation, input } = options;
  const key = partsOf(options.key);
  if (key === undefined) throw noKey(options.key);
  const scope = scopeOption(context, options);
  if (scope.kind === "missing") {
    throw new OncekeyError(
      "SCOPE_MISSING",
      "The scope, or a part of it, is missing. Say whose key it is, or GLOBAL_SCOPE.",
    );
  }
  return {
    operation,
    identity: identify(context.namespace, scope, operation, key),
    label: policy.keyLabels ? key.join(" ") : undefined,
    fingerprint: options.fingerprint === "off" ? NO_FINGERPRINT : fingerprintValue(input),
  };
}

/** A scope that was given and is `undefined` is a caller who is not known: it never falls back to a scope that all share. */
function scopeOption(context: Identifying, options: RunOptions): ScopeValue {
  if ("scope" in options) return scopeValueOf(options.scope);
  try {
    return context.defaultScope();
  } catch (error) {
    throw scopeFailed(error);
  }
}

function noKey(given: unknown): OncekeyError {
  if (isUnusable(given)) return new OncekeyError("KEY_INVALID", `The key must be ${KEY_INPUT}.`);
  return new OncekeyError(
    "KEY_MISSING",
    "The key, or a part of it, is missing. Give every call its own key.",
  );
}

function scopeFailed(cause: unknown): OncekeyError<"SCOPE_FAILED"> {
  return new OncekeyError(
    "SCOPE_FAILED",
    "The scope function of the instance threw, or returned what is no scope.",
    { cause },
  );
}
