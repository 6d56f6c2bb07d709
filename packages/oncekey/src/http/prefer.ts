/**
 * @module
 * Reads `Prefer: wait=n` (RFC 7240 §4.3): how long a client is ready to wait for an answer.
 *
 * Invariant: a preference is a wish. What cannot be read is no wish, never an error (§2), and the first of
 * several counts. How long a wait may be at most is left to the policy.
 */

/** A longer field is no preference that anybody means. */
const MAX_FIELD_LENGTH = 1_024;
/** Nine digits of seconds are thirty years, and stay exact in milliseconds. */
const WAIT = /^wait[ \t]*=[ \t]*(?:(\d{1,9})|"(\d{1,9})")[ \t]*(?:;|$)/i;

/**
 * The wait that a client prefers, in milliseconds.
 *
 * @param lines the `Prefer` field, joined or one entry per line.
 */
export function readPreferredWaitMs(lines: readonly string[]): number | undefined {
  const field = lines.join(",");
  if (field.length > MAX_FIELD_LENGTH) return undefined;
  for (const preference of splitPreferences(field)) {
    if (!/^wait(?![\w!#$%&'*+.^`|~-])/i.test(preference)) continue;
    const [, bare, quoted] = WAIT.exec(preference) ?? [];
    const seconds = bare ?? quoted;
    return seconds === undefined ? undefined : Number(seconds) * 1_000;
  }
  return undefined;
}

/** At commas, except those within quotation marks. */
function splitPreferences(field: string): string[] {
  const parts = field.match(/(?:[^",]|"(?:[^"\\]|\\.)*"?)+/g) ?? [];
  return parts.map((part) => part.trim());
}
