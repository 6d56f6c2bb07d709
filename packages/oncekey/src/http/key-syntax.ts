/**
 * @module
 * Reads the key of a request: from the `Idempotency-Key` field, or from a value found elsewhere (a query
 * parameter, a member of the body).
 *
 * The field is an RFC 9651 Item whose value is a String (draft-ietf-httpapi-idempotency-key-header-07 §2.1):
 * `"8e03978e-40d5"`. Most clients in the field leave the quotation marks out, so the bare characters are
 * taken too, and name the same key. Invariant: a key is 1 to `maxKeyLength` visible ASCII characters
 * (`!` to `~`), and a field that another reader could read as another key, or as two, is refused:
 *
 * - Quoted: `\"` and `\\` are the only escapes. A space is refused although RFC 9651 allows it: two lines
 *   `"a` and `b"` that a proxy joined would read as the key `a, b`.
 * - Bare: no quotation mark (half a String), no comma (a list, or two lines that were joined), no semicolon
 *   (a parameter, or a part of the key?). Such keys are welcome in quotation marks.
 * - Parameters after a quoted key are checked and ignored, as RFC 9651 §2 tells recipients to.
 *
 * A reason never repeats the key. What to answer is left to `exchange.ts`.
 */

export type KeyReading =
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "missing" }
  /** `reason` is a sentence for the client. */
  | { readonly kind: "invalid"; readonly reason: string };

/**
 * Reads the lines of one header field, in the order they came.
 *
 * @param lines one entry per field line, not joined: on Node from `headersDistinct` or `rawHeaders`. A
 * runtime that only has joined values gives one entry; repeated bare or quoted keys are refused even so.
 * @param maxKeyLength in characters, counted without quotation marks and escapes.
 */
export function readKeyField(lines: readonly string[], maxKeyLength: number): KeyReading {
  const [line] = lines;
  if (line === undefined) return { kind: "missing" };
  if (lines.length > 1) return invalid("The idempotency key was sent more than once; send one.");
  const field = trim(line);
  return field.startsWith('"') ? readQuoted(field, maxKeyLength) : readBare(field, maxKeyLength);
}

/**
 * Takes a value found outside of a header field for a key: text, or a whole number, which is taken by its digits.
 * The characters are the key as they are, without quotation marks.
 */
export function readKeyValue(value: unknown, maxKeyLength: number): KeyReading {
  if (value === undefined || value === null) return { kind: "missing" };
  if (Array.isArray(value)) return invalid("The idempotency key was sent more than once; send one.");
  if (typeof value === "string") return checkKey(value, maxKeyLength);
  if (Number.isSafeInteger(value)) return checkKey(`${value}`, maxKeyLength);
  return invalid("The idempotency key has to be a text or a whole number.");
}

/** Space and tabulator, which RFC 9110 §5.5 does not count as part of a field's value. */
function trim(line: string): string {
  // Looking behind makes it try each run of blanks once, and not again from each of its characters.
  return line.replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, "");
}

/** A String of RFC 9651 §3.3.3, then parameters. What stands in the String is checked as a key afterwards. */
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"(.*)$/s;

function readQuoted(field: string, maxKeyLength: number): KeyReading {
  // An escape takes two characters, and parameters have a bound of their own: no need to look at 10 kB.
  if (field.length > 2 * maxKeyLength + 2 + MAX_PARAMETERS_LENGTH) return tooLong(maxKeyLength);
  const [, escaped, parameters = ""] = QUOTED.exec(field) ?? [];
  if (escaped === undefined) {
    return invalid("The quotation marks or escapes of the idempotency key do not match.");
  }
  if (!PARAMETERS.test(parameters)) {
    return invalid("What follows the quoted idempotency key is not a parameter; send one key.");
  }
  return checkKey(escaped.replaceAll(/\\(["\\])/g, "$1"), maxKeyLength);
}

function readBare(field: string, maxKeyLength: number): KeyReading {
  const reading = checkKey(field, maxKeyLength);
  if (reading.kind !== "key" || !/[",;]/.test(reading.key)) return reading;
  return invalid(
    "An idempotency key with a quotation mark, comma or semicolon has to be in quotation marks; send one key.",
  );
}

function checkKey(key: string, maxKeyLength: number): KeyReading {
  if (key.length === 0) return invalid("The idempotency key is empty.");
  if (key.length > maxKeyLength) return tooLong(maxKeyLength);
  if (!/^[!-~]+$/.test(key)) {
    return invalid(
      "The idempotency key has to consist of visible ASCII characters, without spaces; send one key.",
    );
  }
  return { kind: "key", key };
}

const MAX_PARAMETERS_LENGTH = 512;

/** Parameters of RFC 9651 §3.1.2, each a key and an optional bare item (§3.3). */
const PARAMETERS = new RegExp(
  `^(?:; *[a-z*][a-z0-9_.*-]*(?:=(?:${[
    String.raw`-?\d{1,12}\.\d{1,3}|-?\d{1,15}`, // Decimal, Integer
    String.raw`"(?:[ !#-[\]-~]|\\["\\])*"`, // String
    "[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*", // Token
    ":[A-Za-z0-9+/]*={0,2}:", // Byte Sequence
    String.raw`\?[01]`, // Boolean
    String.raw`@-?\d{1,15}`, // Date
    '%"(?:[ !#$&-~]|%[0-9a-f]{2})*"', // Display String
  ].join("|")}))?)*$`,
);

function tooLong(maxKeyLength: number): KeyReading {
  return invalid(`The idempotency key is longer than ${maxKeyLength} characters.`);
}

function invalid(reason: string): KeyReading {
  return { kind: "invalid", reason };
}
