/**
 * @module
 * What an operator gives, and everything that can be wrong with it: which record, which records, who and why, what became of it.
 *
 * Invariant: as in `policy-checks.ts`, every problem is a phrase that begins with the name of what is wrong, and none throws.
 * A script at night is plain JavaScript: what it misspells must not look like "there are none".
 */
import { configurationError } from "./errors.js";
import { type KeyInput, partsOf, type ScopeValue, scopeValueOf } from "./key.js";
import { MAX_PAGE } from "./limits.js";
import { countProblems, durationProblems, isOptions, unknownOptions } from "./policy-checks.js";
import type { RecordKey, RecordState, RecordVersion } from "./record.js";

/** Names a record: by what its caller used, or by the digest that events and `list` show. */
export type RecordTarget = (
  | {
      readonly operation: string;
      /** May be left out where the instance has a scope. */
      readonly scope?: KeyInput | ScopeValue;
      readonly key: KeyInput;
    }
  | { readonly recordKey: RecordKey }
) & {
  /** The record of a step of it instead; of a step inside a step, the names from the outermost on. */
  readonly step?: string | readonly string[] | undefined;
};

/** Who changes a record by hand, and why; both are kept in the event. */
export interface OperatorNote {
  readonly by: string;
  readonly reason: string;
  /** From `find` or `list`: refuse if the record has changed since. Without it the record is looked up now. */
  readonly version?: RecordVersion | undefined;
  /** Also if its work may still be running. @defaultValue false */
  readonly evenIfLive?: boolean | undefined;
}

/** What an operator says became of an operation. `done` without a result leaves a tombstone. */
export type OperatorVerdict =
  | { readonly kind: "done"; readonly result?: unknown }
  | { readonly kind: "not-done" };

/** Which records to look at; what is left out does not narrow it. */
export interface ListOptions {
  readonly scope?: KeyInput | ScopeValue | undefined;
  readonly operation?: string | undefined;
  /** `"lapsed"`: claims whose lease has ended. */
  readonly state?: RecordState | "lapsed" | undefined;
  /** Only records that have been in their state at least this long. */
  readonly olderThanMs?: number | undefined;
  /** Records of one page, 1 to 1,000. @defaultValue 100 */
  readonly limit?: number | undefined;
  /** From the page before. */
  readonly cursor?: string | undefined;
}

const LIST_NAMES: ReadonlySet<string> = new Set<keyof ListOptions>([
  "scope",
  "operation",
  "state",
  "olderThanMs",
  "limit",
  "cursor",
]);
const NOTE_NAMES: ReadonlySet<string> = new Set<keyof OperatorNote>([
  "by",
  "reason",
  "version",
  "evenIfLive",
]);
const STATES = ["claimed", "lapsed", "unknown", "completed", "released"] satisfies ListOptions["state"][];
/** SHA-256 as base64url. */
const RECORD_KEY = /^[\w-]{43}$/;

/** @throws OncekeyError `CONFIGURATION_INVALID` with the problems, if there are any. */
export function refuse(what: string, problems: readonly string[]): void {
  if (problems.length > 0) throw configurationError(what, problems);
}

/** @param scoped whether the instance says whose key it is where a target does not. */
export function targetProblems(target: unknown, scoped: boolean): string[] {
  if (!isOptions(target)) return ["target must be { operation, scope, key } or { recordKey }"];
  const problems = stepProblems(target.step);
  if ("recordKey" in target) {
    const { recordKey } = target;
    if (typeof recordKey === "string" && RECORD_KEY.test(recordKey)) return problems;
    return [
      ...problems,
      "recordKey must be the key that an event, find or list shows: 43 characters of base64url",
    ];
  }
  const { operation, key, scope } = target;
  if (typeof operation !== "string" || operation === "") {
    problems.push("operation must be a text: what the call or route was named");
  }
  if (partsOf(key) === undefined) problems.push("key, or a part of it, is missing");
  if (!("scope" in target ? isScope(scope) : scoped)) {
    problems.push("scope, or a part of it, is missing: whose key it is, or GLOBAL_SCOPE");
  }
  return problems;
}

function stepProblems(step: unknown): string[] {
  const names: readonly unknown[] = step === undefined ? [] : [step].flat();
  return names.every((name) => typeof name === "string" && name !== "")
    ? []
    : ["step must be the name of a step, or a list of names"];
}

export function listProblems(options: unknown): string[] {
  if (!isOptions(options)) return [`options must be an object with any of ${[...LIST_NAMES].join(", ")}`];
  const { scope, operation, state, olderThanMs, limit, cursor } = options;
  const problems = unknownOptions(options, LIST_NAMES);
  if (scope !== undefined && !isScope(scope)) problems.push("scope, or a part of it, is missing");
  problems.push(...textProblems("operation", operation), ...textProblems("cursor", cursor));
  if (state !== undefined && !(STATES as readonly unknown[]).includes(state)) {
    problems.push(`state must be one of ${STATES.map((one) => `"${one}"`).join(", ")}`);
  }
  if (olderThanMs !== undefined) problems.push(...durationProblems("olderThanMs", olderThanMs, 0));
  return [...problems, ...countProblems("limit", limit, 1, MAX_PAGE)];
}

export function noteProblems(note: unknown): string[] {
  if (!isOptions(note))
    return ["note, the last argument, must be { by, reason }: who changes the record, and why"];
  const { by, reason, version, evenIfLive } = note;
  const problems = [...unsaid("by", by), ...unsaid("reason", reason), ...textProblems("version", version)];
  if (evenIfLive !== undefined && typeof evenIfLive !== "boolean") {
    problems.push("evenIfLive must be true or false");
  }
  return [...problems, ...unknownOptions(note, NOTE_NAMES)];
}

export function verdictProblems(said: unknown): string[] {
  const fits = isOptions(said) && (said.kind === "done" || said.kind === "not-done");
  return fits
    ? []
    : ['verdict, the second argument, must be { kind: "done", result } or { kind: "not-done" }'];
}

function isScope(scope: unknown): boolean {
  return scopeValueOf(scope).kind !== "missing";
}

function textProblems(name: string, value: unknown): string[] {
  return value === undefined || typeof value === "string" ? [] : [`${name} must be a text`];
}

function unsaid(name: "by" | "reason", text: unknown): string[] {
  return typeof text === "string" && text.trim() !== "" ? [] : [`${name} must be said`];
}
