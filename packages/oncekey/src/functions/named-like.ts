/**
 * @module
 * A function in the place of another.
 *
 * Invariant: whoever looks at it (a stack trace, a framework that reads metadata) finds what the other one had.
 */

/** Gives `wrapper` what can be seen of `original`: name, number of parameters, and whatever else was noted on it. */
export function namedLike<F extends (...args: never[]) => unknown>(original: object, wrapper: F): F {
  for (const name of ["name", "length"] as const) {
    const described = Object.getOwnPropertyDescriptor(original, name);
    if (described !== undefined) Object.defineProperty(wrapper, name, described);
  }
  // Metadata that other decorators keep beside a function is looked for along its prototypes.
  return Object.setPrototypeOf(wrapper, original);
}
