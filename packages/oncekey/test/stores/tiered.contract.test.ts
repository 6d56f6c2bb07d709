import { memoryStore } from "oncekey/stores/memory";
import { replayTier } from "oncekey/stores/tiered";
import { bindStoreContract, manualClock } from "oncekey/testing";
import { describe, it } from "vitest";

const BEHIND = "the memory store behind it has none";

/** A tier changes nothing of what its store promises. */
bindStoreContract(
  { describe, it },
  {
    open() {
      const clock = manualClock();
      return {
        store: replayTier(memoryStore({ clock, sweepIntervalMs: 0 }), { clock }),
        sleep: clock.advance,
      };
    },
    waivers: {
      transactions: BEHIND,
      joining: BEHIND,
      pinning: BEHIND,
      "a record that cannot be read is an error, never no record": "nothing can damage an object in memory",
      "an unreadable record disturbs nobody else's waiting, and an operator can remove it":
        "nothing can damage an object in memory",
      "an unreadable record does not spoil the batch that it is in": "nothing can damage an object in memory",
      "one connection that is closed leaves the others working":
        "records in memory are reached through one store only",
    },
  },
);
