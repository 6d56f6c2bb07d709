/**
 * @module
 * What the library needs from the platform below it and the Web standards do not give (or give only slowly).
 *
 * `#platform` resolves to `node.ts` or, elsewhere, to `web.ts`. Invariant: both export exactly these names
 * with the same behaviour; `platform.test.ts` compiles against this contract and runs one suite over both.
 */

/** A value that follows a call through everything it awaits. */
export interface Context<T> {
  /** Runs `work` with `value` as the current one, and returns what it returns. */
  run<R>(value: T, work: () => R): R;
  current(): T | undefined;
}

/** A content coding this library can undo. `x-gzip` is `gzip` (RFC 9110 §8.4.1.3). */
export type ContentCoding = "gzip" | "deflate" | "br" | "zstd";

/**
 * - `unsupported`: this platform has no decoder for the coding.
 * - `too-large`: more than the bound would come out; decoding stopped there.
 * - `malformed`: the bytes are not of that coding.
 */
export type Decompression =
  | { readonly kind: "decompressed"; readonly bytes: Uint8Array }
  | { readonly kind: "unsupported" }
  | { readonly kind: "too-large" }
  | { readonly kind: "malformed" };

export interface Platform {
  /**
   * SHA-256 in base64url without padding, synchronously: a digest through `crypto.subtle` takes some eighty
   * times as long for the small inputs of an idempotency layer. Text is digested as its UTF-8.
   */
  sha256(data: string | Uint8Array): string;
  /** CRC-32 (that of gzip and PNG) as an unsigned number, to notice damage; it is no protection from intent. */
  crc32(data: string | Uint8Array): number;
  /** `undefined` where the platform cannot follow a call through its promises. */
  createContext<T>(): Context<T> | undefined;
  /** Calls `task` in a later turn of the event loop, after pending I/O had its chance. */
  defer(task: () => void): void;
  /** Resolves in a later turn of the event loop. */
  yieldTurn(): Promise<void>;
  /** Undoes one content coding; never holds more than `maxBytes` of output. Never rejects. */
  decompress(coding: ContentCoding, bytes: Uint8Array, maxBytes: number): Promise<Decompression>;
  /**
   * Whether `value` is a `Proxy`, whose traps would run if it were looked at. A Web platform cannot tell and
   * says `false`.
   */
  isProxy(value: object): boolean;
}
