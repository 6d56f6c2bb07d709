/**
 * @module
 * Values in the text of statements.
 *
 * On its own connections the store writes values into the text itself, so that neither a driver's escaping nor the
 * server's `sql_mode` has a say in where a value ends. On a caller's connection they travel as parameters. Invariants:
 * either way each value stands in the text once, in order; anything but harmless ASCII is written as hexadecimal.
 */

export type SqlValue = string | number | Uint8Array | null;

/** Puts a value into a statement: gives the text that stands for it. */
export type Bind = (value: SqlValue) => string;

/** Printable ASCII without the quote and the backslash: it ends nowhere, in no `sql_mode`. */
const HARMLESS = /^[ !-&(-[\]-~]*$/;

/** A value as a literal. */
export const literal: Bind = (value) => {
  if (value === null) return "NULL";
  if (typeof value === "number") return numberText(value);
  if (typeof value !== "string") return `x'${hexOf(value)}'`;
  return HARMLESS.test(value) ? `'${value}'` : `_utf8mb4 x'${Buffer.from(value, "utf8").toString("hex")}'`;
};

/** Values as parameters of one statement. */
export function parameters(): { readonly bind: Bind; readonly values: SqlValue[] } {
  const values: SqlValue[] = [];
  return {
    values,
    bind(value) {
      // As bytes, text needs no quoting by a driver that may not know the server's mode.
      values.push(typeof value === "string" && !HARMLESS.test(value) ? Buffer.from(value, "utf8") : value);
      return "?";
    },
  };
}

/** A list for `IN (…)`. */
export function listOf(bind: Bind, values: readonly SqlValue[]): string {
  return values.map(bind).join(",");
}

function numberText(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError("A number is not finite");
  return String(value);
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}
