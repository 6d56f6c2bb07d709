/**
 * @module
 * From key to slot: a hash table in typed arrays, as large from the start as the store may become.
 *
 * A `Map` that grows to a million entries copies itself several times on the way, for 32 ms the last time,
 * and is one more large object for the garbage collector to look through. This table never moves: pages that
 * nothing is in are lent by the system when they are first written. Invariant: at most half of it is in use, so
 * a search ends after a few steps; removing closes the gap and leaves no marker behind.
 */
import type { RecordKey } from "../../core/record.js";
import { NO_SLOT, type Slot } from "./rings.js";

export interface Lookup {
  /** `NO_SLOT` if the key is in none. */
  get(key: RecordKey): Slot;
  /** The key is in no slot so far. */
  add(key: RecordKey, slot: Slot): void;
  remove(slot: Slot): void;
}

/** @param keyOf the key in a slot, which stays the same while the slot is in the table. */
export function createLookup(slots: number, keyOf: (slot: Slot) => RecordKey | undefined): Lookup {
  const size = 2 ** Math.ceil(Math.log2(2 * slots + 1));
  const mask = size - 1;
  const table = new Int32Array(size);
  /** By slot: spares most comparisons of keys, and finds out where a slot belongs. */
  const hashes = new Int32Array(slots + 1);

  const slotAt = (place: number): Slot => table[place & mask] as Slot;
  const hashOf = (slot: Slot): number => hashes[slot] as number;

  return {
    get(key) {
      const hash = hashText(key);
      for (let place = hash; ; place++) {
        const slot = slotAt(place);
        if (slot === NO_SLOT || (hashOf(slot) === hash && keyOf(slot) === key)) return slot;
      }
    },
    add(key, slot) {
      const hash = hashText(key);
      hashes[slot] = hash;
      let place = hash;
      while (slotAt(place) !== NO_SLOT) place++;
      table[place & mask] = slot;
    },
    remove(slot) {
      let gap = hashOf(slot);
      while (slotAt(gap) !== slot) gap++;
      for (let place = gap + 1; slotAt(place) !== NO_SLOT; place++) {
        // Whoever was pushed past the gap moves into it, or a search that starts before it would end there.
        const pushedBy = (place - hashOf(slotAt(place))) & mask;
        if (pushedBy < ((place - gap) & mask)) continue;
        table[gap & mask] = slotAt(place);
        gap = place;
      }
      table[gap & mask] = NO_SLOT;
    },
  };
}

/** FNV-1a with a last mixing: keys are digests, but nothing here depends on it. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash ^ (hash >>> 15);
}
