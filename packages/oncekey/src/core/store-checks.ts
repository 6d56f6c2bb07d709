/**
 * @module
 * Tells a store from what somebody took for one, and says what it lacks.
 *
 * Invariant: whatever has the members of the port is a store, whoever made it; nothing here calls one.
 */
import type { Store } from "./store.js";

/** The calls about records, which no store may leave out. */
export const STORE_METHODS = [
  "claim",
  "extend",
  "complete",
  "release",
  "markUnknown",
  "reconcile",
  "resolve",
  "status",
  "find",
  "list",
  "purge",
] as const satisfies readonly (keyof Store)[];

export type StoreMethod = (typeof STORE_METHODS)[number];

const METHODS: readonly (keyof Store)[] = [...STORE_METHODS, "close"];

/** What of the port `store` does not have; nothing if it can be used. */
export function missingOfStore(store: unknown): string[] {
  const members = (store ?? {}) as Readonly<Record<string, unknown>>;
  const missing: string[] = METHODS.filter((name) => typeof members[name] !== "function");
  if (typeof members.name !== "string") missing.push("name");
  const traits = members.traits as { readonly forgetsOn?: unknown } | undefined | null;
  if (typeof traits?.forgetsOn !== "object" || traits.forgetsOn === null) missing.push("traits");
  return missing;
}

/** One phrase on what came in place of a store, or nothing if a store came. */
export function notAStore(store: unknown): string[] {
  if (store === undefined || store === null) {
    return ["store is missing: where records are kept, such as { store: memoryStore() }"];
  }
  if (typeof store === "function") {
    return [
      `store is a function${named(store.name)}; did you forget the () of its factory, as in memoryStore()?`,
    ];
  }
  if (typeof store !== "object") return [`store must be an object, not a ${typeof store}`];
  const missing = missingOfStore(store);
  if (missing.length === 0) return [];
  const shown = missing.length > MAX_SHOWN ? [...missing.slice(0, MAX_SHOWN), "…"] : missing;
  return [`store${kindOf(store)} has no ${shown.join(", ")}: it must have all members of the port Store`];
}

const MAX_SHOWN = 5;

/** Whether it could be a store that was given where it does not belong. */
export function looksLikeStore(value: object): boolean {
  return missingOfStore(value).length < METHODS.length / 2;
}

/** A client or a collection in place of the store over it is known by the name of its class. */
function kindOf(value: object): string {
  const kind: unknown = Object.getPrototypeOf(value)?.constructor?.name;
  return typeof kind === "string" && kind !== "Object" && kind !== "" ? ` (a ${kind.slice(0, 40)})` : "";
}

function named(name: string): string {
  return name === "" ? "" : ` (${name.slice(0, 40)})`;
}
