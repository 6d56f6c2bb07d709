/**
 * @module
 * Form fields: from `application/x-www-form-urlencoded` text, or from what a framework made of it.
 *
 * Invariant: a form is a list of pairs, sorted by name. The order of fields with different names does not
 * count (a framework's object does not keep it either), the order of equal names does, and of names that one
 * list may be made of (`a`, `a[]`, `a[0]`). A framework that
 * nests (`a[b]=1` as `{ a: { b: "1" } }`) is turned back into the names that were sent, as far as its object
 * tells them: `a[]=1` and `a=1` may come out alike from there, though not from text.
 */

export type FormField = readonly [name: string, value: string];

/**
 * The fields of a form as sent; `undefined` if an escape is malformed or no UTF-8: readers differ about such
 * a form, so it is taken by its bytes.
 */
export function parseForm(text: string): readonly FormField[] | undefined {
  const fields: FormField[] = [];
  try {
    for (const pair of text.split("&")) {
      if (pair === "") continue;
      const end = pair.indexOf("=");
      const name = end < 0 ? pair : pair.slice(0, end);
      fields.push([decode(name), end < 0 ? "" : decode(pair.slice(end + 1))]);
    }
  } catch {
    return undefined;
  }
  return sortByName(fields);
}

/** @throws URIError if an escape is malformed or no UTF-8. */
export function decode(text: string): string {
  return decodeURIComponent(text.replaceAll("+", " "));
}

/** The fields of a form that a framework has parsed already. */
export function flattenForm(form: object): readonly FormField[] {
  const fields: FormField[] = [];
  for (const [name, value] of Object.entries(form)) addField(fields, name, value, 0);
  return sortByName(fields);
}

/** Form parsers stop at a handful of levels; deeper objects come from somewhere else. */
const MAX_DEPTH = 64;

function addField(fields: FormField[], name: string, value: unknown, depth: number): void {
  if (typeof value !== "object" || value === null || depth === MAX_DEPTH) {
    fields.push([name, value === undefined || value === null ? "" : String(value)]);
    return;
  }
  for (const [inner, member] of Object.entries(value)) {
    const plainList = Array.isArray(value) && (typeof member !== "object" || member === null);
    addField(fields, plainList ? name : `${name}[${inner}]`, member, depth + 1);
  }
}

/** The fields as an object, for pointers: a name sent more than once holds a list. */
export function formDocument(fields: readonly FormField[]): Readonly<Record<string, unknown>> {
  const document = new Map<string, string | string[]>();
  for (const [name, value] of fields) {
    const before = document.get(name);
    document.set(name, before === undefined ? value : [before, value].flat());
  }
  return Object.fromEntries(document);
}

/** `sort` is stable: what may become one list keeps its order. */
function sortByName(fields: FormField[]): readonly FormField[] {
  return fields.sort(([a], [b]) => byRoot(a, b));
}

/** Compares two names by what stands before their brackets, or in the first ones: `a` of `a`, `a[b][]` and `[a]`. */
export function byRoot(one: string, other: string): number {
  const [a, b] = [rootOf(one), rootOf(other)];
  return Number(a > b) - Number(a < b);
}

function rootOf(name: string): string {
  if (!name.includes("[")) return name;
  const [, root = ""] = /^\[?([^[\]]*)/.exec(name) ?? [];
  return root;
}
