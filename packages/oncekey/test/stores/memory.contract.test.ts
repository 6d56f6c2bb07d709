import { memoryStore } from "oncekey/stores/memory";
import { bindStoreContract, manualClock } from "oncekey/testing";
import { describe, it } from "vitest";

const NO_DATABASE = "there is no database whose rows could commit with the record";
const NO_OTHER = "records in memory are reached through one store only";

bindStoreContract(
  { describe, it },
  {
    open() {
      const clock = manualClock();
      return { store: memoryStore({ clock, sweepIntervalMs: 0 }), sleep: clock.advance };
    },
    waivers: {
      transactions: NO_DATABASE,
      joining: NO_DATABASE,
      pinning: NO_DATABASE,
      "a record that cannot be read is an error, never no record": "nothing can damage an object in memory",
      "an unreadable record disturbs nobody else's waiting, and an operator can remove it":
        "nothing can damage an object in memory",
      "an unreadable record does not spoil the batch that it is in": "nothing can damage an object in memory",
      "one connection that is closed leaves the others working": NO_OTHER,
    },
  },
);
