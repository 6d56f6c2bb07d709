/**
 * @module
 * Functions and methods that are protected wherever they are called: what is protected is said once, where they are made.
 */

export type { ArgumentOptions, OfArguments, ScopeOfArguments } from "./argument-options.js";
export { idempotentFunction } from "./idempotent-function.js";
export type { IdempotentDecorator, InstanceSource } from "./idempotent-method.js";
export { Idempotent } from "./idempotent-method.js";
