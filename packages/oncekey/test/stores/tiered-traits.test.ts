/** What a tier says of itself is what its store says. */
import type { Store } from "oncekey";
import { memoryStore } from "oncekey/stores/memory";
import { replayTier } from "oncekey/stores/tiered";
import { expect, it } from "vitest";

it("a tier can forget what its store says that it can forget, also where that says so later", () => {
  const forgetful = { processCrash: true, powerLoss: true, failover: true, eviction: true };
  const behind = { ...memoryStore(), traits: { forgetsOn: forgetful, reach: "network" } as Store["traits"] };
  const tier = replayTier(behind);
  expect(tier.traits.forgetsOn).toEqual(forgetful);
  behind.traits = { forgetsOn: { ...forgetful, eviction: false }, reach: "network" };
  expect(tier.traits).toBe(behind.traits);
});
