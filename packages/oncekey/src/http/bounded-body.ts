/**
 * @module
 * The bytes of an answer on their way past, kept up to a bound and only counted beyond it.
 *
 * Invariant: either every byte is kept or none. Chunks have to be copies: a handler may use its buffer again.
 */

export interface BoundedBody {
  add(chunk: Uint8Array): void;
  /** Bytes that came by, kept or not. */
  size(): number;
  /** More came by than may be kept. */
  overflown(): boolean;
  /** All of them, or `undefined` if they were too many. */
  bytes(): Uint8Array | undefined;
}

export function boundedBody(maxBytes: number): BoundedBody {
  let chunks: Uint8Array[] = [];
  let size = 0;
  const overflown = (): boolean => size > maxBytes;
  return {
    add(chunk) {
      size += chunk.byteLength;
      if (overflown()) chunks = [];
      else chunks.push(chunk);
    },
    size: () => size,
    overflown,
    bytes: () => (overflown() ? undefined : joined(chunks)),
  };
}

/** One array of all `chunks`; the chunk itself if there is one only. */
export function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const [only] = chunks;
  if (only !== undefined && chunks.length === 1) return only;
  const all = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.byteLength, 0));
  let offset = 0;
  for (const chunk of chunks) {
    all.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return all;
}
