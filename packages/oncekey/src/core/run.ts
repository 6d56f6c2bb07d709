/**
 * @module
 * `run`: any function, protected by a key.
 *
 * Invariants: only the caller whose function ran gets its result itself; everybody else gets a copy through the
 * codec, exactly what a replay would give. A result that cannot be kept never becomes an error of its caller.
 */
import type { Call, Ended, Performed } from "./call.js";
import {
  decodeResult,
  type EncodedResult,
  encodeError,
  encodeResult,
  RESULT_TOMBSTONE,
  type ResultCodec,
} from "./codec.js";
import { configurationError, isOncekeyError, OncekeyError, unreachable } from "./errors.js";
import type { EventListener } from "./events.js";
import { fingerprintValue, NO_FINGERPRINT } from "./fingerprint.js";
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
import { type Ending, POLICY_NAMES, type Policy, type ResolvedPolicy, saidAtOnce } from "./policy.js";
import { collectProblems } from "./policy-checks.js";
import type { Guarantee, StoredOutcome } from "./record.js";
import { callProblems } from "./run-checks.js";
import type { Work } from "./work.js";

/** What identifies one call of an operation, and what its caller wants of it. */
export interface RunOptions<R = unknown, G extends Guarantee = Guarantee> extends Policy {
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
  /** Maps results to data and back: instances of classes, versions of `R`. */
  readonly result?: ResultCodec<R> | undefined;
  /** What a repeat gets when the result could not be kept. @defaultValue it rejects with `RESULT_NOT_RETAINED` */
  readonly onTombstone?: (() => R | Promise<R>) | undefined;
}

/** Every option there is: another name is a misspelling, which would be a default in silence. */
const NAMES: ReadonlySet<string> = new Set([
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

/** How a call got its result. `attempt` and `waitedMs`: which start it was; how long it waited for another's. */
export type RunOutcome<R> =
  | { readonly kind: "executed"; readonly result: R; readonly attempt: number }
  /** The store did not answer and the policy said to run all the same. */
  | { readonly kind: "unprotected"; readonly result: R }
  | { readonly kind: "replayed"; readonly result: R; readonly waitedMs: number };

/** How the function itself ended. */
type Settled<R> =
  | { readonly kind: "returned"; readonly value: R }
  | { readonly kind: "threw"; readonly error: unknown };

/** What a call of `run` needs of its instance. */
export interface RunContext {
  readonly namespace: string;
  readonly policyFor: (options: Policy) => ResolvedPolicy;
  readonly defaultScope: () => ScopeValue;
  readonly perform: <E>(call: Call<E>) => Promise<Performed<E>>;
  readonly emit: EventListener;
}

export async function runWithOutcome<R>(
  context: RunContext,
  options: RunOptions<R>,
  fn: (work: Work) => R | Promise<R>,
): Promise<RunOutcome<R>> {
  const policy = checkedPolicy(context, options, fn);
  const performed = await context.perform<Settled<R>>({
    ...identified(context, options, policy),
    policy,
    signal: () => options.signal,
    carrier: undefined,
    waitMs: undefined,
    commitRepeats: COMMIT_REPEATS,
    run: (work) => runFunction(context, options, policy, fn, work),
    encodeDone: (result) => encodeDone(options.result, policy.maxResultBytes, result),
  });
  switch (performed.kind) {
    case "executed":
      return { kind: "executed", result: resultOf(performed.value), attempt: performed.attempt };
    case "unprotected":
      return { kind: "unprotected", result: resultOf(performed.value) };
    case "superseded":
      return { kind: "replayed", result: await replayed(options, performed.outcome), waitedMs: 0 };
    case "replayed":
      return {
        kind: "replayed",
        result: await replayed(options, performed.outcome),
        waitedMs: performed.waitedMs,
      };
    default:
      return unreachable(performed);
  }
}

/** @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the call and with its policy. */
function checkedPolicy(context: RunContext, options: RunOptions, fn: unknown): ResolvedPolicy {
  const problems = callProblems(options, NAMES, fn);
  const policy = collectProblems(problems, () => context.policyFor(options));
  if (policy === undefined || problems.length > 0) throw configurationError("Call", problems);
  return policy;
}

/** A call that cannot be identified is counted like every other. */
function identified(context: RunContext, options: RunOptions, policy: ResolvedPolicy) {
  try {
    return identityOf(context, options, policy);
  } catch (error) {
    if (isOncekeyError(error)) reportRefused(context.emit, options.operation, error);
    throw error;
  }
}

function identityOf(context: RunContext, options: RunOptions, policy: ResolvedPolicy) {
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
function scopeOption(context: RunContext, options: RunOptions): ScopeValue {
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

async function runFunction<R>(
  context: RunContext,
  options: RunOptions<R>,
  policy: ResolvedPolicy,
  fn: (work: Work) => R | Promise<R>,
  work: Work,
): Promise<Ended<Settled<R>>> {
  let settled: Settled<R>;
  try {
    settled = { kind: "returned", value: await fn(work) };
  } catch (error) {
    settled = { kind: "threw", error };
  }
  if (!isKept(context, policy, settled)) {
    const performed =
      settled.kind === "threw" && isOncekeyError(settled.error, "NOT_PERFORMED") ? "no" : "maybe";
    return { kind: "failed", value: settled, code: codeOf(settled), performed };
  }
  const commit = settled.kind === "returned" ? "everything" : "record";
  return { kind: "kept", value: settled, ...encodeSettled(options, policy, settled), commit };
}

/** A rule that throws must not turn a success into an error: then what is returned is kept. */
function isKept(context: RunContext, policy: ResolvedPolicy, settled: Ending): boolean {
  try {
    return saidAtOnce(policy.keep(settled));
  } catch {
    const text = "keep threw, or is async; what was returned is kept, what was thrown is not";
    context.emit({ type: "warning", text });
    return settled.kind === "returned";
  }
}

function encodeSettled<R>(options: RunOptions<R>, policy: ResolvedPolicy, settled: Settled<R>): Stored {
  if (settled.kind === "threw") return storedAs(encodeError(settled.error, policy.maxResultBytes));
  return encodeValue(options.result, policy.maxResultBytes, settled.value);
}

/** What is on record of a result, and why that is not the result. */
type Stored = Pick<Extract<Ended<unknown>, { readonly kind: "kept" }>, "outcome" | "notKept">;

function encodeValue<R>(codec: ResultCodec<R> | undefined, maxBytes: number, value: R): Stored {
  try {
    return storedAs(encodeResult(codec === undefined ? value : codec.encode(value), maxBytes));
  } catch {
    // The user's own codec failed after the effect: done is done, only the result is not kept.
    return { outcome: RESULT_TOMBSTONE, notKept: "its codec threw" };
  }
}

function storedAs(encoded: EncodedResult): Stored {
  return encoded.kind === "encoded"
    ? { outcome: encoded.outcome, notKept: undefined }
    : { outcome: RESULT_TOMBSTONE, notKept: encoded.detail };
}

/**
 * Stores what a reconciler or an operator says, who may know that it is done and not with what result.
 *
 * @throws TypeError if the result is no data, and whatever its codec throws: who says it can still say something else.
 */
export function encodeDone<R>(
  codec: ResultCodec<R> | undefined,
  maxBytes: number,
  result: unknown,
): StoredOutcome {
  if (result === undefined) return RESULT_TOMBSTONE;
  const encoded = encodeResult(codec === undefined ? result : codec.encode(result as R), maxBytes);
  if (encoded.kind === "encoded") return encoded.outcome;
  if (encoded.reason === "too-large") return RESULT_TOMBSTONE;
  throw new TypeError(`The result cannot be kept: it ${encoded.detail}. Give data, or no result.`);
}

function codeOf(settled: Settled<unknown>): string | undefined {
  if (settled.kind === "returned") return "NOT_KEPT";
  const { error } = settled;
  if (typeof error !== "object" || error === null) return undefined;
  const code: unknown = "code" in error ? error.code : undefined;
  return typeof code === "string" ? code.slice(0, 64) : undefined;
}

function resultOf<R>(settled: Settled<R>): R {
  if (settled.kind === "threw") throw settled.error;
  return settled.value;
}

async function replayed<R>({ result, onTombstone }: RunOptions<R>, outcome: StoredOutcome): Promise<R> {
  const decoded = decodeResult(outcome);
  switch (decoded.kind) {
    case "value":
      return result === undefined ? (decoded.value as R) : result.decode(decoded.value);
    case "error":
      throw decoded.error;
    case "tombstone":
      if (onTombstone !== undefined) return onTombstone();
      throw new OncekeyError(
        "RESULT_NOT_RETAINED",
        "The operation is completed, but its result could not be kept.",
        { completed: true },
      );
    default:
      return unreachable(decoded);
  }
}
