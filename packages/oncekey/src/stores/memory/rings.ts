/**
 * @module
 * Queues of slots: doubly linked rings that live in two typed arrays.
 *
 * Linked objects would do the same, but the garbage collector walks such a list from end to end, and one of
 * a million records shows as a pause. Numbers in a typed array cost it nothing. Invariant: a slot is in at
 * most one ring; appending, removing and looking at the first take constant time.
 */

/** The place of a record. Counted from 1, so that pages of zeros, which the system lends untouched, mean "nowhere". */
export type Slot = number;

export const NO_SLOT: Slot = 0;

export interface Rings {
  /** Puts `slot` last in `ring`, out of the ring it was in. */
  append(ring: number, slot: Slot): void;
  /** Takes `slot` out of its ring, if it is in one. */
  remove(slot: Slot): void;
  /** `NO_SLOT` if the ring is empty. */
  first(ring: number): Slot;
  /** The one behind `slot` in its ring; `NO_SLOT` behind the last. */
  after(slot: Slot): Slot;
}

/** Makes `rings` empty rings for the slots 1 to `slots`. */
export function createRings(slots: number, rings: number): Rings {
  const next = new Int32Array(slots + rings + 1);
  const previous = new Int32Array(slots + rings + 1);
  // Each ring is closed by an anchor behind the slots, which spares every special case at its ends.
  const anchorOf = (ring: number): number => slots + 1 + ring;
  for (let ring = 0; ring < rings; ring++) link(anchorOf(ring), anchorOf(ring));

  function link(before: number, after: number): void {
    next[before] = after;
    previous[after] = before;
  }

  function remove(slot: Slot): void {
    const following = next[slot] as number;
    if (following === NO_SLOT) return;
    link(previous[slot] as number, following);
    next[slot] = NO_SLOT;
  }

  function after(slot: Slot): Slot {
    const following = next[slot] as number;
    return following > slots ? NO_SLOT : following;
  }

  return {
    append(ring, slot) {
      remove(slot);
      const anchor = anchorOf(ring);
      link(previous[anchor] as number, slot);
      link(slot, anchor);
    },
    remove,
    first: (ring) => after(anchorOf(ring)),
    after,
  };
}
