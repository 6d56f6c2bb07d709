/**
 * @module
 * The bounds of the store and what is given up to stay within them.
 *
 * By bytes, the oldest answers lose their body. By count, new keys are refused, per scope first, unless
 * forgetting was chosen. Invariant: a live claim and an unknown record are never given up, and no body is
 * let go before an older one.
 */
import { describeRecord, type ScopeId } from "../../core/record.js";
import type { Settings } from "./options.js";
import { BARE, drop, purgeExpired, type Records, replace, WITH_BODY } from "./records.js";
import { NO_SLOT, type Slot } from "./rings.js";

/** Expired records that a call which found the store full removes before it says so; a millisecond of work. */
const PURGE_WHEN_FULL = 1_000;

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
  if (isScopeFull()) return "scope";
  while (isFull()) {
    if (!settings.forgets || !forgetOldestCompleted(records, settings, nowMs)) return "records";
  }
  return undefined;
}

/** Makes tombstones of the oldest answers: whoever lost one asks again soon, or never. */
export function letBodiesGo(records: Records, maxBytes: number, nowMs: number): void {
  while (records.bytes > maxBytes) {
    const slot = records.completed.first(WITH_BODY);
    const record = records.bySlot[slot];
    if (record?.outcome === undefined) return;
    replace(records, slot, { ...record, outcome: { head: record.outcome.head, body: undefined } }, nowMs);
  }
}

function forgetOldestCompleted(records: Records, { onForgotten }: Settings, nowMs: number): boolean {
  const slot = oldestCompleted(records);
  const record = records.bySlot[slot];
  if (record === undefined) return false;
  drop(records, slot);
  // Later, so that a fault of the listener is not one of the call that needed the room.
  if (onForgotten !== undefined) queueMicrotask(() => onForgotten(describeRecord(record, nowMs)));
  return true;
}

function oldestCompleted({ completed, bySlot }: Records): Slot {
  const withBody = completed.first(WITH_BODY);
  const bare = completed.first(BARE);
  if (withBody === NO_SLOT || bare === NO_SLOT) return withBody === NO_SLOT ? bare : withBody;
  return (bySlot[withBody]?.changedAtMs ?? 0) < (bySlot[bare]?.changedAtMs ?? 0) ? withBody : bare;
}
