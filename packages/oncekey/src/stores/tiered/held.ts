/**
 * @module
 * Completed records that this process holds, so that it can replay them without asking anybody.
 *
 * Invariants: bounded by number and by bytes, the least lately used goes first; what has ended is never given. What ends when
 * is left to `tier.ts`.
 */
import type { Fingerprint } from "../../core/fingerprint.js";
import type { ClaimToken, RecordKey, StoredOutcome } from "../../core/record.js";

export interface HeldRecord {
  readonly fingerprint: Fingerprint;
  readonly completedBy: ClaimToken;
  readonly outcome: StoredOutcome;
  /** On the monotonic clock of this process. */
  readonly endsAtMs: number;
}

export interface HeldBounds {
  readonly maxRecords: number;
  readonly maxBytes: number;
  readonly maxRecordBytes: number;
}

export interface Held {
  get(key: RecordKey, nowMs: number): HeldRecord | undefined;
  put(key: RecordKey, record: HeldRecord): void;
  remove(key: RecordKey): void;
  clear(): void;
}

/** Beside its result, about what a record takes here. */
const OVERHEAD_BYTES = 400;

export function createHeld({ maxRecords, maxBytes, maxRecordBytes }: HeldBounds): Held {
  // In the order of their last use.
  const records = new Map<RecordKey, HeldRecord>();
  let bytes = 0;

  function remove(key: RecordKey): void {
    const record = records.get(key);
    if (record === undefined) return;
    records.delete(key);
    bytes -= sizeOf(record);
  }

  return {
    get(key, nowMs) {
      const record = records.get(key);
      if (record === undefined) return undefined;
      if (nowMs >= record.endsAtMs) {
        remove(key);
        return undefined;
      }
      records.delete(key);
      records.set(key, record);
      return record;
    },
    put(key, record) {
      remove(key);
      if (resultBytes(record) > maxRecordBytes || sizeOf(record) > maxBytes) return;
      records.set(key, { ...record, outcome: copyOf(record.outcome) });
      bytes += sizeOf(record);
      for (const oldest of records.keys()) {
        if (records.size <= maxRecords && bytes <= maxBytes) break;
        remove(oldest);
      }
    },
    remove,
    clear() {
      records.clear();
      bytes = 0;
    },
  };
}

/** Whoever made the bytes, or is given them, may write into them. */
export function copyOf({ head, body }: StoredOutcome): StoredOutcome {
  return { head, body: body === undefined ? undefined : new Uint8Array(body) };
}

export function resultBytes({ outcome: { head, body } }: Pick<HeldRecord, "outcome">): number {
  return 2 * head.length + (body?.byteLength ?? 0);
}

function sizeOf(record: HeldRecord): number {
  return OVERHEAD_BYTES + resultBytes(record);
}
