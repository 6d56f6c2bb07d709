/**
 * @module
 * Which record expires next, without looking at the others.
 *
 * Records that expire equally long after they were put here stand in one queue, which is therefore in order
 * of expiry; there are few such durations (retention, lease + retention). Invariant: a record is never due
 * early. It may be due late where somebody uses more durations than there are queues: those share a queue
 * per power of two. Whoever reads a record judges its time anew, so that late means late in memory only.
 */
import { createRings, NO_SLOT, type Slot } from "./rings.js";

/** Queues of one duration each. More than this at once come from a computed retention. */
const EXACT = 64;
/** Queues of all durations up to a power of two: 2^40 ms are 35 years. */
const ROUNDED = 41;

export interface Expiry {
  /** `Infinity`: never. */
  schedule(slot: Slot, expiresAtMs: number, nowMs: number): void;
  cancel(slot: Slot): void;
  /** A slot whose record has expired; `NO_SLOT` if there is none. */
  due(nowMs: number): Slot;
  /** When the next one is due; `Infinity` if none will be. */
  nextMs(): number;
}

/** @param expiresAtMs when the record in a slot expires. */
export function createExpiry(slots: number, expiresAtMs: (slot: Slot) => number): Expiry {
  const rings = createRings(slots, EXACT + ROUNDED);
  const exact = new Map<number, number>();
  const freeRings = Array.from({ length: EXACT }, (_, index) => EXACT - 1 - index);
  /** Nothing that is here now falls due before this. */
  let quietUntilMs = Number.POSITIVE_INFINITY;

  function ringOf(durationMs: number): number {
    const known = exact.get(durationMs);
    if (known !== undefined) return known;
    if (freeRings.length === 0) reclaimEmptyRings();
    const ring = freeRings.pop();
    if (ring === undefined) {
      return EXACT + Math.min(ROUNDED - 1, Math.ceil(Math.log2(Math.max(1, durationMs))));
    }
    exact.set(durationMs, ring);
    return ring;
  }

  function reclaimEmptyRings(): void {
    for (const [durationMs, ring] of exact) {
      if (rings.first(ring) !== NO_SLOT) continue;
      exact.delete(durationMs);
      freeRings.push(ring);
    }
  }

  function nextMs(): number {
    let earliestMs = Number.POSITIVE_INFINITY;
    for (let ring = 0; ring < EXACT + ROUNDED; ring++) {
      const slot = rings.first(ring);
      if (slot !== NO_SLOT) earliestMs = Math.min(earliestMs, expiresAtMs(slot));
    }
    return earliestMs;
  }

  return {
    schedule(slot, endMs, nowMs) {
      if (endMs === Number.POSITIVE_INFINITY) {
        rings.remove(slot);
        return;
      }
      rings.append(ringOf(Math.round(endMs - nowMs)), slot);
      quietUntilMs = Math.min(quietUntilMs, endMs);
    },
    cancel: rings.remove,
    due(nowMs) {
      if (nowMs < quietUntilMs) return NO_SLOT;
      for (let ring = 0; ring < EXACT + ROUNDED; ring++) {
        const slot = rings.first(ring);
        if (slot !== NO_SLOT && expiresAtMs(slot) <= nowMs) return slot;
      }
      quietUntilMs = nextMs();
      return NO_SLOT;
    },
    nextMs,
  };
}
