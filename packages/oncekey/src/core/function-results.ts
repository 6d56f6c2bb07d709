/**
 * @module
 * A function as protected work: how its end is stored, and how a stored end is given back.
 *
 * Invariants: what is stored of a result never depends on who asked for it; a result that cannot be kept never becomes an
 * error of its caller. Which end is stored, and when, is left to the engine.
 */
import type { Ended, Performed } from "./call.js";
import {
  decodeResult,
  type EncodedResult,
  encodeError,
  encodeResult,
  RESULT_TOMBSTONE,
  type ResultCodec,
} from "./codec.js";
import { isOncekeyError, OncekeyError, unreachable } from "./errors.js";
import type { EventListener } from "./events.js";
import { type Ending, type ResolvedPolicy, saidAtOnce } from "./policy.js";
import type { StoredOutcome } from "./record.js";
import type { Work } from "./work.js";

/** What a call says of its result. */
export interface FunctionOptions<R> {
  /** Maps results to data and back: instances of classes, versions of `R`. */
  readonly result?: ResultCodec<R> | undefined;
  /** What a repeat gets when the result could not be kept. @defaultValue it rejects with `RESULT_NOT_RETAINED` */
  readonly onTombstone?: (() => R | Promise<R>) | undefined;
}

/** How a call got its result. `attempt` and `waitedMs`: which start it was; how long it waited for another's. */
export type RunOutcome<R> =
  | { readonly kind: "executed"; readonly result: R; readonly attempt: number }
  /** The store did not answer and the policy said to run all the same. */
  | { readonly kind: "unprotected"; readonly result: R }
  | { readonly kind: "replayed"; readonly result: R; readonly waitedMs: number };

/** How the function itself ended. */
export type Settled<R> =
  | { readonly kind: "returned"; readonly value: R }
  | { readonly kind: "threw"; readonly error: unknown };

/** What the caller gets of a call that the engine has answered. Rejects with what was thrown, or was kept of a throw. */
export async function outcomeOf<R>(
  options: FunctionOptions<R>,
  performed: Performed<Settled<R>>,
): Promise<RunOutcome<R>> {
  switch (performed.kind) {
    case "executed":
      return { kind: "executed", result: resultOf(performed.value), attempt: performed.attempt };
    case "unprotected":
      return { kind: "unprotected", result: resultOf(performed.value) };
    case "superseded":
      return { kind: "replayed", result: await replayed(options, performed.outcome), waitedMs: 0 };
    case "replayed": {
      const { waitedMs } = performed;
      return { kind: "replayed", result: await replayed(options, performed.outcome), waitedMs };
    }
    default:
      return unreachable(performed);
  }
}

export async function runFunction<R>(
  emit: EventListener,
  options: FunctionOptions<R>,
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
  if (!isKept(emit, policy, settled)) {
    const performed =
      settled.kind === "threw" && isOncekeyError(settled.error, "NOT_PERFORMED") ? "no" : "maybe";
    return { kind: "failed", value: settled, code: codeOf(settled), performed };
  }
  const commit = settled.kind === "returned" ? "everything" : "record";
  return { kind: "kept", value: settled, ...encodeSettled(options, policy, settled), commit };
}

/** A rule that throws must not turn a success into an error: then what is returned is kept. */
function isKept(emit: EventListener, policy: ResolvedPolicy, settled: Ending): boolean {
  try {
    return saidAtOnce(policy.keep(settled));
  } catch {
    const text = "keep threw, or is async; what was returned is kept, what was thrown is not";
    emit({ type: "warning", text });
    return settled.kind === "returned";
  }
}

function encodeSettled<R>(options: FunctionOptions<R>, policy: ResolvedPolicy, settled: Settled<R>): Stored {
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

async function replayed<R>({ result, onTombstone }: FunctionOptions<R>, outcome: StoredOutcome): Promise<R> {
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
