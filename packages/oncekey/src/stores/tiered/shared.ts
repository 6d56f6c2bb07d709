/**
 * @module
 * A second tier, which processes share: completed records on a server that is quicker than the store, such as Redis.
 *
 * Invariants: it only ever replays; whatever it does wrong (slow, down, full, gone) costs time and no more; what is damaged or
 * was written by another version is not there. An entry lives half as long as it may, so that a write which lands late, by as
 * much again, is not too late.
 */
import type { Clock } from "../../core/clock.js";
import type { Fingerprint } from "../../core/fingerprint.js";
import type { ClaimToken, RecordKey } from "../../core/record.js";
import type { HeldRecord } from "./held.js";

/**
 * Bytes under a name, for a time: three commands of Redis. The client should give up at once where it is not connected.
 *
 * @example
 * const shared = {
 *   get: (name) => redis.getBuffer(name),
 *   set: (name, value, forMs) => redis.set(name, Buffer.from(value), "PX", forMs),
 *   delete: (name) => redis.del(name),
 * };
 */
export interface SharedReplays {
  get(name: string): PromiseLike<Uint8Array | null | undefined>;
  set(name: string, value: Uint8Array, forMs: number): PromiseLike<unknown>;
  delete(name: string): PromiseLike<unknown>;
}

export type SharedRecord = Omit<HeldRecord, "endsAtMs">;

export interface Shared {
  get(key: RecordKey): Promise<SharedRecord | undefined>;
  /** @param forMs how long it may be replayed, counted from before it was read. */
  put(key: RecordKey, record: SharedRecord, forMs: number): void;
  remove(key: RecordKey): Promise<void>;
}

const PREFIX = "oncekey:replay:1:";
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function createShared(replays: SharedReplays, clock: Clock, timeoutMs: number): Shared {
  /** Whatever goes wrong is as if nothing were there. */
  async function within<T>(ask: () => PromiseLike<T>): Promise<T | undefined> {
    let timer: { cancel(): void } | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = clock.setTimer(() => resolve(undefined), timeoutMs);
    });
    const answer = (async () => ask())().catch(() => undefined);
    try {
      return await Promise.race([answer, late]);
    } finally {
      timer?.cancel();
    }
  }

  return {
    async get(key) {
      const bytes = await within(() => replays.get(PREFIX + key));
      return bytes instanceof Uint8Array ? decode(bytes) : undefined;
    },
    put(key, record, forMs) {
      const halfMs = Math.floor(forMs / 2);
      if (halfMs > 0) void within(() => replays.set(PREFIX + key, encode(record), halfMs));
    },
    async remove(key) {
      await within(() => replays.delete(PREFIX + key));
    },
  };
}

/** A line of JSON, and the body. */
function encode({ fingerprint, completedBy, outcome: { head, body } }: SharedRecord): Uint8Array {
  const line = JSON.stringify({ fingerprint, completedBy, head, bytes: body?.byteLength ?? null });
  const text = encoder.encode(`${line}\n`);
  const bytes = new Uint8Array(text.byteLength + (body?.byteLength ?? 0));
  bytes.set(text);
  if (body !== undefined) bytes.set(body, text.byteLength);
  return bytes;
}

function decode(value: Uint8Array): SharedRecord | undefined {
  try {
    const end = value.indexOf(10);
    const line = JSON.parse(decoder.decode(value.subarray(0, end))) as Readonly<Record<string, unknown>>;
    const { fingerprint, completedBy, head, bytes } = line;
    const body = value.slice(end + 1);
    const whole =
      typeof fingerprint === "string" && typeof completedBy === "string" && typeof head === "string";
    if (end < 0 || !whole || body.byteLength !== (bytes ?? 0)) return undefined;
    return {
      fingerprint: fingerprint as Fingerprint,
      completedBy: completedBy as ClaimToken,
      outcome: { head, body: bytes === null ? undefined : body },
    };
  } catch {
    return undefined;
  }
}
