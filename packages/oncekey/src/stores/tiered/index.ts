/**
 * @module
 * `oncekey/stores/tiered`: replays without the network, in front of any store.
 */
export type { ReplayTierOptions } from "./options.js";
export type { SharedReplays } from "./shared.js";
export { replayTier } from "./tier.js";
