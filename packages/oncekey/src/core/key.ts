/**
 * @module
 * Whose key, for what: the identity of an operation, as one digest.
 *
 * Invariant: two different identities never give the same record key. The encoding is injective (each part
 * carries its length), scope kinds never meet, and a missing part is refused, never shared. Identity
 * version 1 is frozen; a later one has to look under both for one retention.
 */
import { sha256 } from "#platform";
import { configurationError } from "./errors.js";
import type { RecordKey, ScopeId } from "./record.js";

/** A part of a key or scope. One rule makes it text: 1 and "1" are one caller, dates are ISO 8601 in UTC. */
export type KeyPart = string | number | bigint | boolean | Date;
export type KeyInput = KeyPart | readonly KeyPart[];
export type Missing = undefined | null;

/** Keys are unique over all callers. */
export interface GlobalScope {
  readonly kind: "global";
}

/** Whose key it is. `global` is said in plain sight; it is not a caller whose id happens to be "global". */
export type ScopeValue =
  | GlobalScope
  | { readonly kind: "of"; readonly parts: readonly string[] }
  | { readonly kind: "missing" };

export const GLOBAL_SCOPE: GlobalScope = { kind: "global" };
export const MISSING_SCOPE: ScopeValue = { kind: "missing" };

export interface Identity {
  readonly key: RecordKey;
  readonly scopeId: ScopeId;
}

const IDENTITY_VERSION = "oncekey:1";
/** Digests of scopes that were seen lately; a bounded convenience, cleared when full. */
const MAX_KNOWN_SCOPES = 4_096;
const knownScopes = new Map<string, ScopeId>();

/**
 * The text of each part, or `undefined` if any part is missing: `undefined`, `null`, an empty text, `NaN`, an
 * invalid date, an empty list, an object that has no text of its own.
 */
export function partsOf(input: unknown): readonly string[] | undefined {
  if (!Array.isArray(input)) {
    const text = partText(input);
    return text === undefined ? undefined : [text];
  }
  if (input.length === 0) return undefined;
  const texts: string[] = [];
  for (const part of input as readonly unknown[]) {
    const text = partText(part);
    if (text === undefined) return undefined;
    texts.push(text);
  }
  return texts;
}

/** Whether `input` has no parts though something is there: a plain object, say, which can name nobody. */
export function isUnusable(input: unknown): boolean {
  const parts: readonly unknown[] = Array.isArray(input) ? input : [input];
  return parts.some((part) => partText(part) === undefined && !isAbsent(part));
}

/** What says that there is nothing; so does a number or a date that was made of nothing. */
function isAbsent(part: unknown): boolean {
  return (
    part === undefined || part === null || part === "" || typeof part === "number" || part instanceof Date
  );
}

/** What a key and a scope are made of, for messages. */
export const KEY_INPUT =
  "a text, number, bigint, boolean or date, an id object that prints itself, or a list of these";

function partText(part: unknown): string | undefined {
  switch (typeof part) {
    case "string":
      return part === "" ? undefined : part;
    case "number":
      return Number.isFinite(part) ? String(part) : undefined;
    case "bigint":
    case "boolean":
      return String(part);
    case "object":
      return part === null ? undefined : objectText(part);
    default:
      return undefined;
  }
}

/** What an object without a text of its own prints as, in every realm. */
const NO_TEXT = /^\[object .*\]$/s;

/**
 * Identifier classes of drivers (UUIDs, object ids) print themselves; a plain object would print as all others. Bytes
 * are refused: as text, different ones can read alike.
 */
function objectText(part: object): string | undefined {
  if (part instanceof Date) return Number.isNaN(part.getTime()) ? undefined : part.toISOString();
  if (Array.isArray(part) || ArrayBuffer.isView(part)) return undefined;
  try {
    const text = String(part);
    return text === "" || NO_TEXT.test(text) ? undefined : text;
  } catch {
    // Parsed JSON can have a member `toString` that is no function.
    return undefined;
  }
}

/** Whether it is said, by the word or by `GLOBAL_SCOPE`, that keys are unique over all callers. */
export function saysGlobal(scope: unknown): scope is "global" | GlobalScope {
  return scope === "global" || (typeof scope === "object" && scopeValueOf(scope).kind === "global");
}

/**
 * A scope from what a scope function returned.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` if something is there that can name nobody: that is no missing caller.
 */
export function scopeOf(input: unknown): ScopeValue {
  const parts = partsOf(input);
  if (parts !== undefined) return { kind: "of", parts };
  if (isUnusable(input)) {
    throw configurationError("Scope", [
      `scope must be ${KEY_INPUT}; for all callers as one, GLOBAL_SCOPE or "global"`,
    ]);
  }
  return MISSING_SCOPE;
}

/**
 * A scope that may have been said already.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` as `scopeOf` does.
 */
export function scopeValueOf(scope: unknown): ScopeValue {
  if (typeof scope !== "object" || scope === null || !("kind" in scope)) return scopeOf(scope);
  if (scope.kind === "global") return GLOBAL_SCOPE;
  if (scope.kind === "missing") return MISSING_SCOPE;
  return scopeOf(scope.kind === "of" && "parts" in scope ? scope.parts : scope);
}

/** The name of the record of `key` in `operation` for `scope`. */
export function identify(
  namespace: string,
  scope: ScopeValue,
  operation: string,
  key: readonly string[],
): Identity {
  const scopeText = scopeTextOf(namespace, scope);
  let text = scopeText + framed(operation);
  for (const part of key) text += framed(part);
  return { key: sha256(text) as RecordKey, scopeId: scopeIdOf(scopeText) };
}

/** The digest under which records of a scope are listed. */
export function scopeId(namespace: string, scope: ScopeValue): ScopeId {
  return scopeIdOf(scopeTextOf(namespace, scope));
}

/** A key for another service: the same over all attempts, bodies and processes. */
export function downstreamKeyOf(key: RecordKey, name: string): string {
  return sha256(`${IDENTITY_VERSION}:downstream${framed(key)}${framed(name)}`);
}

/** The name of the record of a step of the work of `key`. A step of a step has the step's as its own. */
export function stepKeyOf(key: RecordKey, name: string): RecordKey {
  return sha256(`${IDENTITY_VERSION}:step${framed(key)}${framed(name)}`) as RecordKey;
}

/** A half of a surrogate pair becomes U+FFFD in UTF-8, like any other half: such a text is escaped first. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** That of all callers as one, which almost always is asked for in the same namespace: kept, so it is made and hashed once. */
let lastGlobal = { namespace: "", text: scopeTextMade("", "global", []) };

function scopeTextOf(namespace: string, scope: ScopeValue): string {
  if (scope.kind !== "global") {
    return scopeTextMade(namespace, scope.kind, scope.kind === "of" ? scope.parts : []);
  }
  if (lastGlobal.namespace !== namespace) {
    lastGlobal = { namespace, text: scopeTextMade(namespace, scope.kind, []) };
  }
  return lastGlobal.text;
}

function scopeTextMade(namespace: string, kind: ScopeValue["kind"], parts: readonly string[]): string {
  return `${IDENTITY_VERSION}${framed(namespace)}${framed(kind)}#${parts.length}#${parts.map(framed).join("")}`;
}

function framed(part: string): string {
  if (!LONE_SURROGATE.test(part)) return `${part.length}:${part}`;
  const escaped = JSON.stringify(part);
  return `e${escaped.length}:${escaped}`;
}

function scopeIdOf(text: string): ScopeId {
  const known = knownScopes.get(text);
  if (known !== undefined) return known;
  if (knownScopes.size >= MAX_KNOWN_SCOPES) knownScopes.clear();
  const made = sha256(text) as ScopeId;
  knownScopes.set(text, made);
  return made;
}
