/**
 * @module
 * Finds everything that is wrong with the options of an instance beside its policy's names and its limits.
 *
 * Invariant: as in `policy-checks.ts`, every problem is a phrase that begins with the option's name, and none throws.
 */
import { saysGlobal } from "./key.js";
import type { Policy, StoreFacts } from "./policy.js";
import { functionProblems, isOptions, policyProblems } from "./policy-checks.js";
import type { Store } from "./store.js";
import { looksLikeStore, notAStore } from "./store-checks.js";

/** Options as somebody without types may give them. */
interface GivenOptions {
  readonly store: Store;
  readonly scope?: unknown;
  readonly namespace?: unknown;
  readonly onEvent?: unknown;
  readonly clock?: unknown;
  readonly waitUntil?: unknown;
}

/** What came in place of the options, if they cannot be looked into: the rest would be noise. */
export function argumentProblems(options: unknown): string[] {
  if (!isOptions(options)) return ["options must be an object with a store: { store: memoryStore() }"];
  return !("store" in options) && looksLikeStore(options)
    ? ["options must be an object with a store; a store came in its place: write { store }"]
    : [];
}

/** @param policy that of the instance, with what the limits say about it. */
export function instanceProblems(options: GivenOptions, policy: Policy): string[] {
  const { scope, namespace, onEvent, clock, waitUntil, store } = options;
  const problems: string[] = [];
  if (scope !== undefined && !saysGlobal(scope) && typeof scope !== "function") {
    problems.push('scope must be "global" or a function without arguments');
  }
  if (namespace !== undefined && typeof namespace !== "string") problems.push("namespace must be a string");
  problems.push(...functionProblems("onEvent", onEvent), ...functionProblems("waitUntil", waitUntil));
  if (clock !== undefined && !hasMethods(clock, ["now", "monotonicMs", "setTimer"])) {
    problems.push("clock must have the functions now, monotonicMs and setTimer");
  }
  return [...problems, ...storeProblems(store, policy)];
}

/** What of a store decides which policies it can serve. */
export function factsOf(store: Store): StoreFacts {
  return { name: store.name, traits: store.traits, transactions: store.begin !== undefined };
}

function storeProblems(store: Store, policy: Policy): string[] {
  const problems = notAStore(store);
  return problems.length > 0 ? problems : policyProblems(policy, factsOf(store));
}

function hasMethods(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== "object" || value === null) return false;
  return names.every((name) => typeof (value as Readonly<Record<string, unknown>>)[name] === "function");
}
