/**
 * @module
 * The bytes of answers, copied so that nobody else can change them.
 *
 * A buffer of its own for each answer costs more than the rest of the call, and the garbage collector counts
 * them all. Small answers therefore share chunks. Invariants: a part of a chunk is written once and never
 * leaves the store, so no answer can be seen or changed through another; answers that share a chunk live
 * about equally long, so a chunk is not held by the last of them for long.
 */
import { KIB } from "../../core/limits.js";
import type { StoredOutcome } from "../../core/record.js";

const CHUNK_BYTES = 64 * KIB;
/** A larger answer has a buffer of its own, or it would leave too much of a chunk empty. */
const SHARED_BYTES = 8 * KIB;

interface Chunk {
  readonly bytes: Uint8Array;
  used: number;
}

export interface Bodies {
  /** The outcome with bytes of our own, which will be kept for about `retentionMs`. */
  keep(outcome: StoredOutcome, retentionMs: number): StoredOutcome;
}

export function createBodies(): Bodies {
  /** By the power of two of the retention: at most a few dozen. */
  const chunks = new Map<number, Chunk>();

  function chunkFor(byteLength: number, retentionMs: number): Chunk {
    const lifetime = Math.ceil(Math.log2(Math.max(1, retentionMs)));
    const open = chunks.get(lifetime);
    if (open !== undefined && open.used + byteLength <= CHUNK_BYTES) return open;
    const fresh = { bytes: new Uint8Array(CHUNK_BYTES), used: 0 };
    chunks.set(lifetime, fresh);
    return fresh;
  }

  return {
    keep(outcome, retentionMs) {
      const { head, body } = outcome;
      if (body === undefined || body.byteLength > SHARED_BYTES) return handedOut(outcome);
      const chunk = chunkFor(body.byteLength, retentionMs);
      const from = chunk.used;
      chunk.bytes.set(body, from);
      chunk.used += body.byteLength;
      return { head, body: new Uint8Array(chunk.bytes.buffer, from, body.byteLength) };
    },
  };
}

/** The outcome with bytes in a buffer of their own, for whoever asked: it may be changed or given away. */
export function handedOut({ head, body }: StoredOutcome): StoredOutcome {
  return { head, body: body && new Uint8Array(body) };
}
