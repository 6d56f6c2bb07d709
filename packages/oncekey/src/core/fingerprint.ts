/**
 * @module
 * The fingerprint: a digest of what was asked, so that a key used again for something else is noticed.
 *
 * It is the text `<tag>:<digest>`. The tag names the rule that made the digest (the algorithm and its
 * settings); digests of different rules say nothing about each other. Invariant: `fingerprintOf` is
 * injective up to SHA-256: different lists of parts never meet. What an HTTP request consists of is left to
 * `http/fingerprint.ts`.
 */
import { sha256 } from "#platform";
import { canonicalText } from "./canonical.js";

declare const brand: unique symbol;
export type Fingerprint = string & { readonly [brand]: "Fingerprint" };

/** Names a rule. No colon, which ends it in the fingerprint. */
export type FingerprintTag = string & { readonly [brand]: "FingerprintTag" };

const TAG = /^[a-z][a-z0-9]*(?:\.[\w-]+)?$/;

/** Value of `run({ input })`, version 1. */
const VALUE_TAG = fingerprintTag("v1");

/** Nothing was fingerprinted: any request under the key is taken for the same one. */
export const NO_FINGERPRINT = "off:" as Fingerprint;

/**
 * Names a rule: a short name with its version and, where the rule has settings, a digest of them.
 *
 * @param settings anything that changes what two requests have to share to be the same; any data.
 */
export function fingerprintTag(name: string, settings?: unknown): FingerprintTag {
  const tag = settings === undefined ? name : `${name}.${sha256(canonicalText(settings)).slice(0, 8)}`;
  if (!TAG.test(tag)) throw new TypeError(`A fingerprint tag is lower-case letters and digits: ${tag}`);
  return tag as FingerprintTag;
}

/**
 * Digests `parts` under a tag.
 *
 * Each part goes in with its kind and length, so no two lists of parts read alike (`["ab", "c"]` and
 * `["a", "bc"]`; a text and the bytes that spell it). Bytes go in by their own digest, which spares copying
 * an upload. Text has to be well-formed: a lone surrogate cannot be told from U+FFFD.
 */
export function fingerprintOf(tag: FingerprintTag, parts: readonly (string | Uint8Array)[]): Fingerprint {
  let text = "";
  for (const part of parts) {
    text += typeof part === "string" ? `t${part.length}:${part}` : `b${part.byteLength}:${sha256(part)}`;
  }
  return `${tag}:${sha256(text)}` as Fingerprint;
}

/**
 * Digests any data: the order of an object's members, a `Map`'s entries or a `Set`'s elements does not
 * matter, nor does the class of an object.
 *
 * @throws OncekeyError `INPUT_UNSUPPORTED` if `value` holds something that is not data (a function, a stream)
 * or holds itself.
 */
export function fingerprintValue(value: unknown): Fingerprint {
  return fingerprintOf(VALUE_TAG, [canonicalText(value)]);
}

/**
 * Compares two fingerprints. `"incomparable"`: they were made by different rules (a deploy changed the
 * settings, or one of them is off), so nobody can tell whether they mean the same.
 */
export function compareFingerprints(a: Fingerprint, b: Fingerprint): "same" | "different" | "incomparable" {
  if (a === b) return "same";
  const tagLength = a.indexOf(":") + 1;
  return b.startsWith(a.slice(0, tagLength)) ? "different" : "incomparable";
}
