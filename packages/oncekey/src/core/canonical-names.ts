/**
 * @module
 * Member names and texts in their canonical spelling (RFC 8785 §3.2.2.2 and §3.2.3): the hot part of
 * `canonical.ts`.
 *
 * Invariant: gives what `JSON.stringify` and `Array.prototype.sort` give, in less time; what is remembered
 * between calls is bounded.
 */

export type Members = Readonly<Record<string, unknown>>;

/** Up to this many names an insertion sort beats `sort`, and it is linear if they stand in order already. */
const INSERTION_SORT_LIMIT = 24;

/** By UTF-16 code units, as RFC 8785 §3.2.3 asks and JavaScript compares. */
export function sortedNames(members: Members): string[] {
  const names = Object.keys(members);
  if (names.length > INSERTION_SORT_LIMIT) return names.sort();
  for (let end = 1; end < names.length; end++) {
    const name = names[end] as string;
    let place = end;
    for (; place > 0 && (names[place - 1] as string) > name; place--)
      names[place] = names[place - 1] as string;
    names[place] = name;
  }
  return names;
}

/** No quotation mark, backslash, control character or surrogate: stands between quotation marks as it is. */
const PLAIN = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;
/** Up to this length the expression takes half the time of `JSON.stringify`; beyond 1 KB it takes more. */
const PLAIN_LIMIT = 256;

export function quote(text: string): string {
  return text.length <= PLAIN_LIMIT && PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

/**
 * The same few names come with every request: quoting them once saves a quarter of the time. Names of strangers
 * can fill it; then it starts again, empty.
 */
const quotedNames = new Map<string, string>();
const MAX_QUOTED_NAMES = 2_048;
const MAX_QUOTED_LENGTH = 64;

export function quoteName(name: string): string {
  const known = quotedNames.get(name);
  if (known !== undefined) return known;
  const quoted = `${quote(name)}:`;
  if (name.length <= MAX_QUOTED_LENGTH) {
    if (quotedNames.size >= MAX_QUOTED_NAMES) quotedNames.clear();
    quotedNames.set(name, quoted);
  }
  return quoted;
}
