/** Random sequences of calls and of time: the memory store and the reference model have to agree on each answer. */
import fc from "fast-check";
import { memoryStore } from "oncekey/stores/memory";
import { manualClock } from "oncekey/testing";
import { describe, it } from "vitest";
import { newModel, storeCommands } from "../support/store-commands.js";

describe("the memory store", () => {
  it("answers every sequence of calls as the model does", { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(storeCommands(), async (commands) => {
        const clock = manualClock();
        const store = memoryStore({ clock, sweepIntervalMs: 0 });
        await fc.asyncModelRun(
          () => ({ model: newModel(), real: { store, advance: clock.advance } }),
          commands,
        );
      }),
      { numRuns: 300 },
    );
  });
});
