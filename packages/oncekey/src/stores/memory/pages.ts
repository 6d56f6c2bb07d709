/**
 * @module
 * Paging through records for operators.
 *
 * Pages go by shard and, within one, by key, so a record that is there throughout is on exactly one page,
 * whatever comes and goes meanwhile. Invariant: the event loop gets its turn after a bounded number of
 * records, however few of them match.
 */
import { yieldTurn } from "#platform";
import { configurationError } from "../../core/errors.js";
import { MAX_PAGE } from "../../core/limits.js";
import { describeRecord, type RecordInfo, type StoredRecord } from "../../core/record.js";
import type { ListRequest, RecordPage } from "../../core/store.js";
import { currentRecord } from "../../core/transitions.js";
import type { Records } from "./records.js";
import { SHARDS } from "./shards.js";

/** Records looked at in one turn; two milliseconds or so. */
const RECORDS_PER_TURN = 20_000;

interface Place {
  readonly shard: number;
  /** The last key of that shard that has been given out. */
  readonly after: string;
}

/**
 * Walks from the cursor until the page is full.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` for a limit or a cursor that no page gave.
 */
export async function pageOf(
  records: Records,
  request: ListRequest,
  nowMs: () => number,
): Promise<RecordPage> {
  const { shard: from, after } = checked(request);
  const found: { readonly info: RecordInfo; readonly shard: number }[] = [];
  let looked = 0;
  for (let shard = from; shard < SHARDS && found.length <= request.limit; shard++) {
    const now = nowMs();
    const inShard: RecordInfo[] = [];
    for (const slot of records.shards.at(shard).values()) {
      const record = records.bySlot[slot];
      looked++;
      if (record !== undefined && (shard > from || record.key > after) && matches(record, request, now)) {
        inShard.push(describeRecord(record, now));
      }
    }
    inShard.sort((one, other) => (one.key < other.key ? -1 : 1));
    for (const info of inShard) found.push({ info, shard });
    if (looked > RECORDS_PER_TURN) {
      looked = 0;
      await yieldTurn();
    }
  }
  const page = found.slice(0, request.limit);
  const last = page.at(-1);
  const more = found.length > page.length && last !== undefined;
  return {
    records: page.map(({ info }) => info),
    cursor: more ? `${last.shard}.${last.info.key}` : undefined,
  };
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

function checked({ limit, cursor }: ListRequest): Place {
  const problems: string[] = [];
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE)) {
    problems.push(`limit is a whole number from 1 to ${MAX_PAGE}`);
  }
  const place = placeOf(cursor);
  if (place === undefined) problems.push("cursor is not one that a page of this store gave");
  if (problems.length > 0 || place === undefined) throw configurationError("The list request", problems);
  return place;
}

function placeOf(cursor: string | undefined): Place | undefined {
  if (cursor === undefined) return { shard: 0, after: "" };
  const [, shard, after] = /^(\d{1,3})\.(.*)$/s.exec(cursor) ?? [];
  if (shard === undefined || after === undefined || Number(shard) >= SHARDS) return undefined;
  return { shard: Number(shard), after };
}
