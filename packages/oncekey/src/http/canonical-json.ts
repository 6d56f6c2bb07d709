/**
 * @module
 * JSON from text, in the canonical form of RFC 8785, without losing what a double cannot hold.
 *
 * Invariant: two texts get one canonical text if and only if a handler could not tell them apart, except that
 * numbers are told apart by their exact decimal value: `12345678901234567890` and `…891` differ, while `1`,
 * `1.0` and `10e-1` are one. In detail:
 *
 * - Of members with one name the last counts, as for `JSON.parse`.
 * - `-0` is `0`. Numbers beyond a double's range or precision (`1e400`, 20 digits) keep their digits.
 * - A lone surrogate is kept as its escape. `__proto__` is a name like any other.
 * - A byte order mark before the text is ignored, as body parsers do (RFC 8259 §8.1).
 * - Nesting has no limit. Text that is not JSON has no canonical form: the caller takes its bytes.
 *
 * The spelling of values is left to `core/canonical.ts`.
 */
import { parseExactly } from "./exact-json.js";

/**
 * A number that a double may not hold: 16 or more digits (with their point), or an exponent of three or more.
 * Only what may stand before a number is looked for, so most texts in strings do not count; one that does
 * costs time, nothing else.
 */
const RISKY_NUMBER = /(?:^|[[:,\s])-?\d(?:[\d.]{15}|[\d.]*[eE][+-]?\d{3})/;

/**
 * Reads a JSON text; `undefined` if it is not one. Numbers that a double cannot hold come as values that
 * only `canonicalText` understands.
 */
export function parseJsonText(text: string): { readonly value: unknown } | undefined {
  const json = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  try {
    const value: unknown = JSON.parse(json);
    return { value: RISKY_NUMBER.test(json) ? parseExactly(json) : value };
  } catch {
    return undefined;
  }
}
