/**
 * @module
 * `oncekey/presets`: how well-known interfaces behave, as plain policy.
 *
 * Invariant: a preset is a `Policy` and nothing else, so it can be spread wherever a policy is taken, and what is written
 * after it wins. It says nothing about whose keys they are, where records are kept or how refusals read.
 */
export { ietf } from "./ietf.js";
export { stripe } from "./stripe.js";
