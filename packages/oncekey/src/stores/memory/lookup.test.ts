import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RecordKey } from "../../core/record.js";
import { createLookup, type Lookup } from "./lookup.js";
import { NO_SLOT } from "./rings.js";

const SLOTS = 12;

describe("the lookup", () => {
  it("finds what was added and not removed, however keys crowd", () => {
    // More keys than slots in a small table: they push each other around its end, too.
    const keys = Array.from({ length: 60 }, (_, index) => `key ${index}` as RecordKey);
    const steps = fc.array(fc.record({ key: fc.constantFrom(...keys), adds: fc.boolean() }), {
      maxLength: 200,
    });
    const model = (all: readonly Step[]): void => {
      const inSlot: (RecordKey | undefined)[] = Array(SLOTS + 1).fill(undefined);
      const lookup = createLookup(SLOTS, (slot) => inSlot[slot]);
      for (const step of all) {
        apply(step, lookup, inSlot);
        for (const one of keys) expect(lookup.get(one)).toBe(Math.max(inSlot.indexOf(one), NO_SLOT));
      }
    };
    fc.assert(fc.property(steps, model));
  });

  it("takes keys of any length, the empty one included", () => {
    const inSlot = [undefined, "" as RecordKey, "x".repeat(10_000) as RecordKey];
    const lookup = createLookup(2, (slot) => inSlot[slot]);
    lookup.add("" as RecordKey, 1);
    lookup.add("x".repeat(10_000) as RecordKey, 2);
    expect([lookup.get("" as RecordKey), lookup.get("x".repeat(10_000) as RecordKey)]).toEqual([1, 2]);
    expect(lookup.get("x" as RecordKey)).toBe(NO_SLOT);
  });
});

interface Step {
  readonly key: RecordKey;
  readonly adds: boolean;
}

function apply({ key, adds }: Step, lookup: Lookup, inSlot: (RecordKey | undefined)[]): void {
  const slot = inSlot.indexOf(key);
  const free = inSlot.indexOf(undefined, 1);
  if (slot !== -1 && !adds) {
    lookup.remove(slot);
    inSlot[slot] = undefined;
  } else if (slot === -1 && adds && free !== -1) {
    inSlot[free] = key;
    lookup.add(key, free);
  }
}
