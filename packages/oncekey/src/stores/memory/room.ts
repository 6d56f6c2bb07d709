/**
 * @module
 * The bounds of the store and what is given up to stay within them.
 *
 * By bytes, the oldest answers lose their body. By count, new keys are refused, per scope first, unless
 * forgetting was chosen. Invariant: a live claim and an unknown record are never given up, and no body is
 * let go before an older one.
 */
import { describeRecord, type ScopeId, type StoredRecord } from "../../core/record.js";
import type { Settings } from "./options.js";
import { BARE, purgeExpired, type Records, replace, setRecord, WITH_BODY } from "./records.js";
import { NO_SLOT } from "./rings.js";

/** Expired records that a call which found the store full removes before it says so; a millisecond at most. */
const PURGE_WHEN_FULL = 250;
/** Completed records among which one of a full scope is looked for; so large a scope is among the first. */
const LOOKED_AT = 100;

/** Why there is no room for one more record of the scope, after making what room may be made. */
export function fullFor(
  records: Records,
  settings: Settings,
  scopeId: ScopeId,
  nowMs: number,
): "records" | "scope" | undefined {
  const isFull = (): boolean => records.count >= settings.maxRecords || records.bytes > settings.maxBytes;
  const isScopeFull = (): boolean => (records.perScope.get(scopeId) ?? 0) >= settings.maxRecordsPerScope;
  if (isFull() || isScopeFull()) purgeExpired(records, nowMs, PURGE_WHEN_FULL);
  if (isScopeFull() && !forgetOldest(records, settings, nowMs, scopeId)) return "scope";
  while (isFull()) {
    if (!forgetOldest(records, settings, nowMs)) return "records";
  }
  return undefined;
}

/** Makes tombstones of the oldest answers: whoever lost one asks again soon, or never. */
export function letBodiesGo(records: Records, maxBytes: number, nowMs: number): void {
  while (records.bytes > maxBytes) {
    const slot = records.completed.first(WITH_BODY);
    const record = records.slots.get(slot);
    if (record?.outcome === undefined) return;
    replace(records, slot, { ...record, outcome: { head: record.outcome.head, body: undefined } }, nowMs);
  }
}

/** Forgets the record that was completed first, of a scope if one is given. */
function forgetOldest(
  records: Records,
  { forgets, onForgotten }: Settings,
  nowMs: number,
  scopeId?: ScopeId,
): boolean {
  if (!forgets) return false;
  const one = oldest(records, WITH_BODY, scopeId);
  const other = oldest(records, BARE, scopeId);
  const record = one && other ? older(one, other) : (one ?? other);
  if (record === undefined) return false;
  setRecord(records, record.key, undefined, nowMs);
  // Later, so that a fault of the listener is not one of the call that needed the room.
  if (onForgotten !== undefined) queueMicrotask(() => onForgotten(describeRecord(record, nowMs)));
  return true;
}

function oldest({ completed, slots }: Records, ring: number, scopeId?: ScopeId): StoredRecord | undefined {
  let slot = completed.first(ring);
  for (let looked = 0; slot !== NO_SLOT && looked < LOOKED_AT; looked++) {
    const record = slots.get(slot);
    if (scopeId === undefined || record?.scopeId === scopeId) return record;
    slot = completed.after(slot);
  }
  return undefined;
}

function older(one: StoredRecord, other: StoredRecord): StoredRecord {
  return one.changedAtMs < other.changedAtMs ? one : other;
}
