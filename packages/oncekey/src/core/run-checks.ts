/**
 * @module
 * Finds everything that is wrong with the options of one call of `run` beside the values of its policy.
 *
 * Invariant: as in `policy-checks.ts`, every problem is a phrase that begins with the option's name, and none throws. It runs
 * before every call, so a sound one costs a look at each of its options and nothing that outlives it.
 */
import { functionProblems, isOptions, unknownOptions } from "./policy-checks.js";

/** @param names every option that there is. */
export function callProblems(options: unknown, names: ReadonlySet<string>, fn: unknown): string[] {
  if (!isOptions(options)) return ["options must be an object with operation, key, scope and input"];
  const { operation, fingerprint, signal, result, onTombstone } = options;
  const problems = unknownOptions(options, names);
  if (typeof operation !== "string" || operation === "") {
    problems.push("operation must be a text that names what is done");
  }
  if (fingerprint !== undefined && fingerprint !== "off") problems.push('fingerprint must be "off"');
  // Whoever forgets it would otherwise be answered with the first result whatever is asked.
  if (fingerprint !== "off" && !("input" in options)) {
    problems.push('input is missing: what repeats are compared by, or fingerprint: "off"');
  }
  if (signal !== undefined && !isSignal(signal)) problems.push("signal must be an AbortSignal");
  if (result !== undefined && !isCodec(result))
    problems.push("result must have the functions encode and decode");
  problems.push(...functionProblems("onTombstone", onTombstone));
  if (typeof fn !== "function") problems.push("the work must be a function, the second argument");
  return problems;
}

/** By what is used of it: a signal may come from another realm. */
function isSignal(value: unknown): boolean {
  const signal = value as Partial<AbortSignal> | null;
  return typeof signal?.aborted === "boolean" && typeof signal.addEventListener === "function";
}

function isCodec(value: unknown): boolean {
  const codec = value as { readonly encode?: unknown; readonly decode?: unknown } | null;
  return typeof codec?.encode === "function" && typeof codec.decode === "function";
}
