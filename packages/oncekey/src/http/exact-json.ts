/**
 * @module
 * Reads JSON whose numbers a double may not hold: the slow path of `canonical-json.ts`.
 *
 * Invariant: gives what `JSON.parse` gives for the same text, except that a number which a double would
 * change becomes a `canonicalLiteral` with its exact decimal value. It reads without recursion, at any depth.
 * The text has to be known as JSON; whether it is JSON is left to `JSON.parse`.
 */
import { canonicalLiteral } from "../core/canonical.js";

export function parseExactly(json: string): unknown {
  // In text that is known as JSON, whatever is no token is white space, a comma or a colon.
  const tokens = /["[\]{}]|-?\d[\d.eE+-]*|true|false|null/g;
  const builder = createBuilder();
  for (let match = tokens.exec(json); match !== null; match = tokens.exec(json)) {
    const [token] = match;
    switch (token) {
      case "[":
        builder.open([]);
        break;
      case "{":
        builder.open({});
        break;
      case "]":
      case "}":
        builder.close();
        break;
      case '"':
        tokens.lastIndex = endOfString(json, match.index);
        builder.addText(JSON.parse(json.slice(match.index, tokens.lastIndex)));
        break;
      default:
        builder.add(/^[tfn]/.test(token) ? JSON.parse(token) : exactNumber(token));
    }
  }
  return builder.root();
}

interface Container {
  readonly items: unknown[] | Record<string, unknown>;
  /** The name whose value comes next; `undefined` in a list, and where a name comes next. */
  name: string | undefined;
}

function createBuilder() {
  const root: unknown[] = [];
  const around: Container[] = [];
  let inside: Container = { items: root, name: undefined };
  const add = (value: unknown): void => {
    if (Array.isArray(inside.items)) inside.items.push(value);
    else setMember(inside.items, inside.name as string, value);
    inside.name = undefined;
  };
  return {
    add,
    /** A text is a name where an object waits for one. */
    addText(text: string): void {
      if (Array.isArray(inside.items) || inside.name !== undefined) add(text);
      else inside.name = text;
    },
    open(items: Container["items"]): void {
      add(items);
      around.push(inside);
      inside = { items, name: undefined };
    },
    close(): void {
      inside = around.pop() as Container;
    },
    root: (): unknown => root[0],
  };
}

/** Where the string that begins at `start` ends: after the first quotation mark that no backslash escapes. */
function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); ; end = json.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (json[end - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return end + 1;
  }
}

/** Assigning to `__proto__` would set the prototype; `JSON.parse` makes a member of it. */
function setMember(members: Record<string, unknown>, name: string, value: unknown): void {
  if (name === "__proto__") {
    Object.defineProperty(members, name, { value, writable: true, enumerable: true, configurable: true });
  } else members[name] = value;
}

/**
 * The double that a number literal means, or, if no double is written with just that value, its normal form.
 *
 * A normal form denotes the value of its literal and a double's text that double's, so they read alike only
 * where the value is the double's own, and then the double is given.
 */
export function exactNumber(literal: string): unknown {
  const double = Number(literal);
  const normal = normalForm(literal);
  return normal === normalForm(`${double}`) ? double : canonicalLiteral(normal);
}

/** Digits that fit a double's integers: longer exponents are not calculated with. */
const MAX_EXPONENT_DIGITS = 15;

/** `-0012.50e3` as `-125e2`: all digits that count, then a power of ten. */
function normalForm(literal: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(literal) ?? [];
  const digits = trimZeros(`${whole}${fraction}`);
  if (digits.text === "") return "0";
  const power = exponent.replace(/^([+-]?)0+(?=\d)/, "$1").replace("+", "");
  // Such a number has no use but to try us; its exponent is kept as it is written, beside the shift.
  if (power.length > MAX_EXPONENT_DIGITS)
    return `${sign}${digits.text}e${power}#${digits.dropped - fraction.length}`;
  return `${sign}${digits.text}e${Number(power) + digits.dropped - fraction.length}`;
}

/** Drops zeros on both sides; `dropped` counts those on the right. */
function trimZeros(digits: string): { readonly text: string; readonly dropped: number } {
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  let start = 0;
  while (start < end && digits[start] === "0") start++;
  return { text: digits.slice(start, end), dropped: digits.length - end };
}
