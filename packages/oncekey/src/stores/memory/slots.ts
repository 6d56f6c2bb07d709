/**
 * @module
 * Places for records, numbered, in many small arrays.
 *
 * One array that grows to a million elements copies itself on the way and pauses for it. Invariant: a slot that
 * was given back is given out again before a new one, so the numbers stay below the most that were in use.
 */
import type { StoredRecord } from "../../core/record.js";
import { createRings, NO_SLOT, type Slot } from "./rings.js";

const CHUNK_BITS = 12;
const CHUNK = 2 ** CHUNK_BITS;

export interface Slots {
  get(slot: Slot): StoredRecord | undefined;
  put(slot: Slot, record: StoredRecord): void;
  /** A slot with `record` in it. There is one: whoever calls has counted. */
  take(record: StoredRecord): Slot;
  giveBack(slot: Slot): void;
  /** No slot above this one was ever in use. */
  highest(): Slot;
  /** Lets go of everything at once. Nothing is called afterwards. */
  clear(): void;
}

export function createSlots(capacity: number): Slots {
  const chunks: (StoredRecord | undefined)[][] = [];
  const free = createRings(capacity, 1);
  let highest = 0;

  function write(slot: Slot, record: StoredRecord | undefined): void {
    const chunk = chunks[slot >>> CHUNK_BITS];
    if (chunk !== undefined) chunk[slot % CHUNK] = record;
  }

  function unused(): Slot {
    highest += 1;
    chunks[highest >>> CHUNK_BITS] ??= Array(CHUNK).fill(undefined);
    return highest;
  }

  return {
    get: (slot) => chunks[slot >>> CHUNK_BITS]?.[slot % CHUNK],
    put: write,
    take(record) {
      const returned = free.first(0);
      const slot = returned === NO_SLOT ? unused() : returned;
      free.remove(slot);
      write(slot, record);
      return slot;
    },
    giveBack(slot) {
      write(slot, undefined);
      free.append(0, slot);
    },
    highest: () => highest,
    clear() {
      chunks.length = 0;
    },
  };
}
