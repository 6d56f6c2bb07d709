import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRings, NO_SLOT, type Rings } from "./rings.js";

const SLOTS = 6;
const RINGS = 3;

describe("rings", () => {
  it("are queues, of which a slot is in at most one", () => {
    const step = fc.record({
      ring: fc.integer({ min: 0, max: RINGS - 1 }),
      slot: fc.integer({ min: 1, max: SLOTS }),
      appends: fc.boolean(),
    });
    const model = (steps: readonly Step[]): void => {
      const rings = createRings(SLOTS, RINGS);
      let queues: number[][] = Array.from({ length: RINGS }, () => []);
      for (const { ring, slot, appends } of steps) {
        queues = queues.map((queue) => queue.filter((other) => other !== slot));
        if (appends) queues[ring]?.push(slot);
        if (appends) rings.append(ring, slot);
        else rings.remove(slot);
        expect(queues.map((_, index) => inOrder(rings, index))).toEqual(queues);
      }
    };
    fc.assert(fc.property(fc.array(step, { maxLength: 100 }), model));
  });
});

interface Step {
  readonly ring: number;
  readonly slot: number;
  readonly appends: boolean;
}

function inOrder(rings: Rings, ring: number): number[] {
  const slots: number[] = [];
  for (let slot = rings.first(ring); slot !== NO_SLOT; slot = rings.after(slot)) slots.push(slot);
  return slots;
}
