/**
 * @module
 * From key to slot, over many small maps.
 *
 * One `Map` that grows to a million entries copies itself several times on the way, for 32 ms the last time.
 * Invariant: where a key belongs depends on the key alone, so a walk over the shards can stop after any key
 * and go on from there.
 */
import type { RecordKey } from "../../core/record.js";
import type { Slot } from "./rings.js";

/** At a million records a shard holds four thousand, which are moved in a tenth of a millisecond. */
export const SHARDS = 256;

export type Shard = Map<RecordKey, Slot>;

export interface Shards {
  of(key: RecordKey): Shard;
  at(index: number): Shard;
  clear(): void;
}

export function createShards(): Shards {
  const shards = Array.from({ length: SHARDS }, (): Shard => new Map());
  return {
    of: (key) => shards[shardOf(key)] as Shard,
    at: (index) => shards[index] as Shard,
    clear() {
      for (const shard of shards) shard.clear();
    },
  };
}

/** Keys are digests: some of their last characters are as good as a hash of all of them. */
export function shardOf(key: string): number {
  const end = key.length;
  const low = key.charCodeAt(end - 1);
  const middle = key.charCodeAt(end - 2);
  const high = key.charCodeAt(end - 3);
  // Characters that are not there are NaN, which counts as 0 here.
  return ((low * 31) ^ (middle * 131) ^ (high * 7)) & (SHARDS - 1);
}
