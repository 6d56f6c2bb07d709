/**
 * @module
 * Finds everything that is wrong with the options of a route beside its policy and its fingerprint.
 *
 * Invariant: as in `core/policy-checks.ts`, every problem is a phrase that begins with the option's name, and none throws,
 * whatever somebody without types gives.
 */
import { configurationError } from "../core/errors.js";
import { saysGlobal } from "../core/key.js";
import {
  collectProblems,
  countProblems,
  durationProblems,
  functionProblems,
  isOptions,
} from "../core/policy-checks.js";
import type { Guarantee } from "../core/record.js";
import { parsePointer } from "./json-pointer.js";
import { type ProblemOptions, problemOptionProblems } from "./problem.js";

/** Options as somebody without types may give them. */
interface GivenOptions extends ProblemOptions {
  readonly scope?: unknown;
  readonly onMissingScope?: unknown;
  readonly operation?: unknown;
  readonly key?: unknown;
  readonly onMissingKey?: unknown;
  readonly methods?: unknown;
  readonly maxKeyLength?: unknown;
  readonly maxRequestBytes?: unknown;
  readonly onRequestTooLarge?: unknown;
  readonly drainMs?: unknown;
  readonly maxWaitMs?: unknown;
  readonly onTombstone?: unknown;
  readonly commitWhen?: unknown;
  readonly renderRefusal?: unknown;
}

/** What of the arguments cannot be looked into at all. */
export function argumentProblems(idempotency: unknown, options: unknown): string[] {
  const problems: string[] = [];
  if (!isOptions(idempotency) || !isOptions(idempotency.internals)) {
    problems.push(
      "idempotency, the first argument, must be what createIdempotency({ store }) gave, as in idempotent(idempotency, { scope }); " +
        "idempotent itself is no middleware, plugin or handler: what it returns is one",
    );
  }
  if (!isOptions(options)) problems.push("options must be an object");
  return problems;
}

/**
 * What `make` makes of the options, for an adapter that is given the handler itself.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with a missing handler among the problems.
 */
export function withHandler<T>(handler: unknown, make: () => T): T {
  if (typeof handler === "function") return make();
  const problems = [
    "handler, the third argument, must be a function, as in idempotent(idempotency, { scope }, handler)",
  ];
  collectProblems(problems, make);
  throw configurationError("Route", problems);
}

/** @param scoped whether the instance says whose key it is where a route does not. */
export function routeProblems(
  options: GivenOptions,
  guarantee: Guarantee | undefined,
  scoped: boolean,
): string[] {
  return [
    ...scopeProblems(options.scope, scoped),
    ...keyProblems(options.key),
    ...oneOf("onMissingScope", options.onMissingScope, ["reject", "run", "global"]),
    ...oneOf("onMissingKey", options.onMissingKey, ["reject", "run"]),
    ...oneOf("onRequestTooLarge", options.onRequestTooLarge, ["refuse", "skip-body"]),
    ...methodProblems(options.methods),
    ...operationProblems(options.operation),
    ...oneOf("onTombstone", options.onTombstone, ["status", "refuse"], "a function"),
    ...functionProblems("commitWhen", options.commitWhen),
    ...functionProblems("renderRefusal", options.renderRefusal),
    ...problemOptionProblems(options),
    ...countProblems("maxKeyLength", options.maxKeyLength, 1),
    ...countProblems("maxRequestBytes", options.maxRequestBytes, 0),
    ...(options.drainMs === undefined ? [] : durationProblems("drainMs", options.drainMs, 0)),
    ...(options.maxWaitMs === undefined ? [] : durationProblems("maxWaitMs", options.maxWaitMs, 0)),
    ...(guarantee === "at-most-once" ? unprotectedProblems(options) : []),
  ];
}

function unprotectedProblems(options: GivenOptions): string[] {
  return (["onMissingKey", "onMissingScope"] as const)
    .filter((name) => options[name] === "run")
    .map((name) => `${name} "run" contradicts guarantee "at-most-once": unprotected work may start twice`);
}

function scopeProblems(scope: unknown, scoped: boolean): string[] {
  if (scope === undefined && !scoped) {
    return ['scope is missing: a function of the request that says whose key it is, or "global"'];
  }
  const fits = scope === undefined || saysGlobal(scope) || typeof scope === "function";
  return fits ? [] : ['scope must be a function or "global"'];
}

/** Names of methods and of header fields are tokens (RFC 9110 §5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;
const isToken = (value: unknown): boolean => typeof value === "string" && TOKEN.test(value);

function keyProblems(key: unknown): string[] {
  if (key === undefined) return [];
  const sources: readonly unknown[] = Array.isArray(key) ? key : [key];
  return sources.length === 0 ? ["key must name at least one source"] : sources.flatMap(sourceProblems);
}

function sourceProblems(source: unknown): string[] {
  if (typeof source === "function") return [];
  const [member, ...others] = isOptions(source) ? Object.entries(source) : [];
  const [kind, name] = others.length === 0 ? (member ?? []) : [];
  switch (kind) {
    case "header":
      return isToken(name) ? [] : ["key: header must be the name of a header"];
    case "query":
      return typeof name === "string" && name !== "" ? [] : ["key: query must be the name of a parameter"];
    case "body":
      return typeof name === "string" && parsePointer(name) !== undefined
        ? []
        : ['key: body must be a JSON Pointer, such as "/id"'];
    default:
      return ["key: a source is one of { header }, { query }, { body }, a function"];
  }
}

function methodProblems(methods: unknown): string[] {
  if (methods === undefined) return [];
  const fits = Array.isArray(methods) && methods.length > 0 && methods.every(isToken);
  return fits ? [] : ['methods must be a list of names, such as ["POST"]'];
}

function operationProblems(operation: unknown): string[] {
  const fits = operation === undefined || (typeof operation === "string" && operation !== "");
  return fits ? [] : ["operation must be a text that is not empty"];
}

/** @param orFunction says so where a function is allowed too. */
function oneOf(name: string, value: unknown, words: readonly string[], orFunction?: "a function"): string[] {
  if (value === undefined || (words as readonly unknown[]).includes(value)) return [];
  if (orFunction !== undefined && typeof value === "function") return [];
  const allowed = [...words.map((word) => `"${word}"`), ...(orFunction === undefined ? [] : [orFunction])];
  return [`${name} must be one of ${allowed.join(", ")}`];
}
