/**
 * @module
 * The platform where there is nothing but Web standards: edge runtimes, browsers.
 *
 * Invariant: exports what `platform.ts` declares, with the behaviour of `node.ts`. What a Web platform may
 * lack (a context, a decoder) is reported as absent, never imitated half.
 */
import { sha256 as digest } from "@noble/hashes/sha2.js";
import { crc32Of } from "./crc32.js";
import type { Context, Decompression, Platform } from "./platform.js";

export type { ContentCoding, Context, Decompression } from "./platform.js";

const encoder = new TextEncoder();

export const sha256: Platform["sha256"] = (data) => {
  const bytes = digest(typeof data === "string" ? encoder.encode(data) : data);
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
};

export const crc32: Platform["crc32"] = crc32Of;

interface Storage<T> {
  run<R>(value: T, work: () => R): R;
  getStore(): T | undefined;
}

/** Some edge runtimes offer Node's `AsyncLocalStorage` as a global. */
export const createContext: Platform["createContext"] = <T>(): Context<T> | undefined => {
  const { AsyncLocalStorage } = globalThis as { readonly AsyncLocalStorage?: new () => Storage<T> };
  if (AsyncLocalStorage === undefined) return undefined;
  const storage = new AsyncLocalStorage();
  return {
    run: (value, work) => storage.run(value, work),
    current: () => storage.getStore(),
  };
};

/** A timer: it is there everywhere, and there is nothing to close afterwards as with a `MessageChannel`. */
export const defer: Platform["defer"] = (task) => {
  setTimeout(task, 0);
};

export const yieldTurn: Platform["yieldTurn"] = () =>
  new Promise((resolve) => {
    setTimeout(resolve, 0);
  });

export const isProxy: Platform["isProxy"] = () => false;

export const decompress: Platform["decompress"] = async (coding, bytes, maxBytes) => {
  if (coding !== "deflate") return decode(coding === "br" ? "brotli" : coding, bytes, maxBytes);
  // RFC 9110 §8.4.1.2 means zlib's format by "deflate"; some senders leave its wrapper out.
  const wrapped = await decode("deflate", bytes, maxBytes);
  return wrapped.kind === "malformed" ? decode("deflate-raw", bytes, maxBytes) : wrapped;
};

async function decode(format: string, bytes: Uint8Array, maxBytes: number): Promise<Decompression> {
  const decoder = decoderOf(format);
  if (decoder === undefined) return { kind: "unsupported" };
  const reader = new Blob([bytes as Uint8Array<ArrayBuffer>])
    .stream()
    .pipeThrough<Uint8Array>(decoder)
    .getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { kind: "decompressed", bytes: concatenate(chunks, length) };
      length += value.byteLength;
      if (length > maxBytes) {
        // Whether the rest could have been decoded does not matter any more.
        reader.cancel().catch(() => {});
        return { kind: "too-large" };
      }
      chunks.push(value);
    }
  } catch {
    return { kind: "malformed" };
  }
}

/** A platform that does not know a format throws a `TypeError` from the constructor. */
function decoderOf(format: string): DecompressionStream | undefined {
  try {
    return new DecompressionStream(format as ConstructorParameters<typeof DecompressionStream>[0]);
  } catch {
    return undefined;
  }
}

function concatenate(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return whole;
}
