/**
 * @module
 * Promises where none was asked for: a rule, a listener or a hook of the application that is async.
 *
 * Invariant: whatever library or realm it is of, a promise is known by its `then`, and what nobody waits for ends no process.
 */

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";
}

/** Lets go of what a function returned: if it is a promise, its rejection is heard by nobody, and harms nobody. */
export function dropped(returned: unknown): void {
  if (isPromise(returned)) returned.then(undefined, () => undefined);
}
