/** How a case ends for a store that is not finished: with what its author has to do next. */
import { memoryStore } from "oncekey/stores/memory";
import { describe, expect, it } from "vitest";
import { manualClock } from "../manual-clock.js";
import { runStoreCase, type StoreContractSetup, storeContract } from "./index.js";

/** @param differs members that the store has in place of sound ones. */
function setupOf(differs: object): StoreContractSetup<never> {
  return {
    open() {
      const clock = manualClock();
      return { store: { ...memoryStore({ clock, sweepIntervalMs: 0 }), ...differs }, sleep: clock.advance };
    },
  };
}

describe("a case of the contract of stores", () => {
  it("names what an unfinished store lacks, in every case", async () => {
    const setup = setupOf({ close: undefined, markUnknown: undefined });
    for (const one of storeContract) {
      await expect(runStoreCase(one, setup)).rejects.toThrow(
        "The store that open gave is not finished: it has no markUnknown, close",
      );
    }
  });

  it("shows how a case failed, not what cleaning up after it met", async () => {
    const [one] = storeContract;
    if (one === undefined) throw new Error("There are cases");
    const failing = { ...one, run: () => Promise.reject(new Error("the promise is broken")) };
    const setup: StoreContractSetup<never> = {
      async open() {
        const close = () => {
          throw new Error("closed badly");
        };
        return {
          ...(await setupOf({ close }).open()),
          dispose: () => Promise.reject(new Error("left over")),
        };
      },
    };
    await expect(runStoreCase(failing, setup)).rejects.toThrow("the promise is broken");
    await expect(runStoreCase({ ...one, run: async () => {} }, setup)).rejects.toThrow("left over");
  });
});
