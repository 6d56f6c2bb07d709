/**
 * @module
 * The records that are kept.
 *
 * A record has a slot (a small number) for as long as it is kept; its key leads to the slot, and the queues of
 * what expires next and of what was completed first hold slots. Invariant: every operation takes constant
 * time, whatever the number of records. How many there may be is left to `room.ts`.
 */
import type { RecordKey, ScopeId, StoredRecord } from "../../core/record.js";
import { createExpiry, type Expiry } from "./expiry.js";
import { createLookup, type Lookup } from "./lookup.js";
import { createRings, NO_SLOT, type Rings, type Slot } from "./rings.js";
import { createSlots, type Slots } from "./slots.js";

/** Completed records in the order of their completion: those with a body to let go, and the others. */
export const WITH_BODY = 0;
export const BARE = 1;

export interface Records {
  readonly slots: Slots;
  readonly lookup: Lookup;
  readonly perScope: Map<ScopeId, number>;
  readonly completed: Rings;
  readonly expiry: Expiry;
  count: number;
  /** Of the answers, with their heads. */
  bytes: number;
}

export function createRecords(maxRecords: number): Records {
  const slots = createSlots(maxRecords);
  return {
    slots,
    lookup: createLookup(maxRecords, (slot) => slots.get(slot)?.key),
    perScope: new Map(),
    completed: createRings(maxRecords, 2),
    expiry: createExpiry(maxRecords, (slot) => slots.get(slot)?.expiresAtMs ?? Number.POSITIVE_INFINITY),
    count: 0,
    bytes: 0,
  };
}

/** Also a record that has expired and is still here. */
export function recordOf({ lookup, slots }: Records, key: RecordKey): StoredRecord | undefined {
  return slots.get(lookup.get(key));
}

/** Keeps `record` under `key`, or nothing. There is room: `room.ts` was asked if nothing was there before. */
export function setRecord(
  records: Records,
  key: RecordKey,
  record: StoredRecord | undefined,
  nowMs: number,
): void {
  const slot = records.lookup.get(key);
  if (slot === NO_SLOT) {
    if (record !== undefined) add(records, record, nowMs);
  } else if (record === undefined) {
    drop(records, slot);
  } else {
    replace(records, slot, record, nowMs);
  }
}

/** Removes up to `limit` expired records; returns how many. */
export function purgeExpired(records: Records, nowMs: number, limit: number): number {
  for (let removed = 0; removed < limit; removed++) {
    const slot = records.expiry.due(nowMs);
    if (slot === NO_SLOT) return removed;
    drop(records, slot);
  }
  return limit;
}

/** Puts another record of the same key and scope in a slot. */
export function replace(records: Records, slot: Slot, record: StoredRecord, nowMs: number): void {
  const before = records.slots.get(slot);
  if (before === undefined) return;
  records.slots.put(slot, record);
  if (record.expiresAtMs !== before.expiresAtMs) {
    records.expiry.schedule(slot, record.expiresAtMs, nowMs);
  }
  if (record.outcome === before.outcome && record.state === before.state) return;
  records.bytes += bytesOf(record) - bytesOf(before);
  enqueueCompleted(records, slot, record);
}

/** Forgets the record in a slot. */
function drop(records: Records, slot: Slot): void {
  const record = records.slots.get(slot);
  if (record === undefined) return;
  records.lookup.remove(slot);
  records.slots.giveBack(slot);
  records.count--;
  const left = (records.perScope.get(record.scopeId) ?? 0) - 1;
  if (left > 0) records.perScope.set(record.scopeId, left);
  else records.perScope.delete(record.scopeId);
  records.bytes -= bytesOf(record);
  records.expiry.cancel(slot);
  records.completed.remove(slot);
}

function add(records: Records, record: StoredRecord, nowMs: number): void {
  const slot = records.slots.take(record);
  records.lookup.add(record.key, slot);
  records.count++;
  records.perScope.set(record.scopeId, (records.perScope.get(record.scopeId) ?? 0) + 1);
  records.bytes += bytesOf(record);
  records.expiry.schedule(slot, record.expiresAtMs, nowMs);
  enqueueCompleted(records, slot, record);
}

function enqueueCompleted(records: Records, slot: Slot, record: StoredRecord): void {
  if (record.state !== "completed") {
    records.completed.remove(slot);
    return;
  }
  const bodyBytes = record.outcome?.body?.byteLength ?? 0;
  records.completed.append(bodyBytes > 0 ? WITH_BODY : BARE, slot);
}

function bytesOf({ outcome }: StoredRecord): number {
  return outcome === undefined ? 0 : outcome.head.length + (outcome.body?.byteLength ?? 0);
}
