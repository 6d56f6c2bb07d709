import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { ClaimToken, RecordKey } from "../../core/record.js";
import type { KeyStatus } from "../../core/store.js";
import { MAX_STATUS } from "./statements.js";
import { createWatchers } from "./watch.js";

const holder = "t" as ClaimToken;
const keysOf = (count: number) => Array.from({ length: count }, (_, index) => `k${index}` as RecordKey);

/** A file that somebody else writes without pause; `read` gives one record. */
function watchingAll(keys: readonly RecordKey[], read: (key: RecordKey) => KeyStatus) {
  let version = 0;
  const watchers = createWatchers({
    dataVersion: () => {
      version += 1;
      return version;
    },
    status: (some) => some.map(read),
  });
  onTestFinished(() => watchers.close());
  const woken = new Set<RecordKey>();
  for (const key of keys) watchers.watch(key, () => woken.add(key));
  return woken;
}

describe("keys that are watched while others write all the time", () => {
  it("are all looked at, however many they are", async () => {
    const keys = keysOf(3 * MAX_STATUS);
    const woken = watchingAll(keys, () => ({ state: "completed", holder }));
    await vi.waitFor(() => expect(woken.size).toBe(keys.length), 2_000);
  });
});
