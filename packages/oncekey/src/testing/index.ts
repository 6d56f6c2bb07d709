/**
 * @module
 * What the authors of stores, adapters and of tests need: contracts to run, a clock to move, a store that fails on purpose.
 */
export { type ManualClock, manualClock } from "./manual-clock.js";
