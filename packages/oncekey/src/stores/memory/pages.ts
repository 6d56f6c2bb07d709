/**
 * @module
 * Paging through records for operators.
 *
 * Pages go by slot, which a record keeps, so one that is there throughout is on exactly one page, whatever
 * comes and goes meanwhile. Invariant: the event loop gets its turn after a bounded number of records,
 * however few of them match.
 */
import { yieldTurn } from "#platform";
import { configurationError } from "../../core/errors.js";
import { MAX_PAGE } from "../../core/limits.js";
import { describeRecord, type RecordInfo, type StoredRecord } from "../../core/record.js";
import type { ListRequest, RecordPage } from "../../core/store.js";
import { currentRecord } from "../../core/transitions.js";
import type { Records } from "./records.js";
import { NO_SLOT, type Slot } from "./rings.js";

/** Records looked at in one turn; two milliseconds or so. */
const RECORDS_PER_TURN = 20_000;

/**
 * Walks from the cursor until the page is full.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` for a limit or a cursor that no page gave.
 */
export async function pageOf(
  { slots }: Records,
  request: ListRequest,
  nowMs: () => number,
): Promise<RecordPage> {
  const found: RecordInfo[] = [];
  let last = slotBefore(request);
  let now = nowMs();
  for (let slot = last + 1; slot <= slots.highest(); slot++) {
    if (slot % RECORDS_PER_TURN === 0) {
      await yieldTurn();
      now = nowMs();
    }
    const record = slots.get(slot);
    if (record === undefined || !matches(record, request, now)) continue;
    // One more than asked shows that there is another page.
    if (found.length === request.limit) return { records: found, cursor: String(last) };
    found.push(describeRecord(record, now));
    last = slot;
  }
  return { records: found, cursor: undefined };
}

function matches(record: StoredRecord, request: ListRequest, nowMs: number): boolean {
  const { scopeId, operation, state, olderThanMs } = request;
  if (currentRecord(record, nowMs) === undefined) return false;
  if (scopeId !== undefined && record.scopeId !== scopeId) return false;
  if (operation !== undefined && record.operation !== operation) return false;
  if (olderThanMs !== undefined && nowMs - record.changedAtMs < olderThanMs) return false;
  if (state === undefined) return true;
  if (state === "lapsed") return record.state === "claimed" && nowMs >= record.leaseEndsAtMs;
  return record.state === state;
}

/** The last slot of the page before. */
function slotBefore({ limit, cursor }: ListRequest): Slot {
  const problems: string[] = [];
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE)) {
    problems.push(`limit is a whole number from 1 to ${MAX_PAGE}`);
  }
  if (cursor !== undefined && !/^\d{1,8}$/.test(cursor)) {
    problems.push("cursor is not one that a page of this store gave");
  }
  if (problems.length > 0) throw configurationError("The list request", problems);
  return cursor === undefined ? NO_SLOT : Number(cursor);
}
