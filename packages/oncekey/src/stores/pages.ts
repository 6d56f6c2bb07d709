/**
 * @module
 * Pages of records for operators, gathered from slices of a table that is walked in the order of something that never
 * changes.
 *
 * Invariants: one read looks at a bounded number of rows, however few of them match; a page ends when it is full, and soon
 * at the latest, so that a filter which matches little never outlasts its caller: it may then be short, or empty, and not be the
 * last. What cannot be read takes its place on the page by its key, and hides none of the others. How a slice is read is left to the
 * store.
 */
import { systemClock } from "../core/clock.js";
import { configurationError, type OncekeyError } from "../core/errors.js";
import { MAX_PAGE } from "../core/limits.js";
import type { RecordInfo, RecordKey } from "../core/record.js";
import type { ListRequest, RecordPage } from "../core/store.js";

/** Rows that one read looks at: a few milliseconds of a server. */
export const ROWS_PER_SLICE = 1_000;
/** Who does not say how long a page may take has as long as this. */
export const PAGE_MS = 1_000;

export type PageEntry = RecordInfo | { readonly unreadable: RecordKey };

/** A match, and its place in the order of the walk. */
export interface Placed<Place> {
  readonly place: Place;
  readonly entry: PageEntry;
}

export interface Slice<Place> {
  readonly matches: readonly Placed<Place>[];
  /** The last place that was looked at; `undefined`: there are no more. */
  readonly until: Place | undefined;
}

/**
 * @param readSlice the matches after a place, at most `most` of them.
 * @throws OncekeyError `CONFIGURATION_INVALID` for a limit that is out of bounds.
 */
export async function gatherPage<Place extends string | number>(
  { limit, withinMs = PAGE_MS }: ListRequest,
  from: Place,
  readSlice: (after: Place, most: number) => Promise<Slice<Place>>,
): Promise<RecordPage> {
  checkLimit(limit);
  const endsAtMs = systemClock.monotonicMs() + withinMs;
  const found: Placed<Place>[] = [];
  let after: Place | undefined = from;
  // One more than asked shows whether there is another page.
  do {
    const { matches, until }: Slice<Place> = await readSlice(after, limit + 1 - found.length);
    found.push(...matches);
    after = until;
  } while (after !== undefined && found.length <= limit && systemClock.monotonicMs() < endsAtMs);
  const page = found.slice(0, limit);
  return pageOf(
    page.map(({ entry }) => entry),
    found.length > limit ? page.at(-1)?.place : after,
  );
}

/** @param next where the next page begins; `undefined`: there is none. */
export function pageOf(entries: readonly PageEntry[], next: string | number | undefined): RecordPage {
  const unreadable = entries.flatMap((entry) => ("unreadable" in entry ? [entry.unreadable] : []));
  return {
    records: entries.flatMap((entry) => ("unreadable" in entry ? [] : [entry])),
    ...(unreadable.length > 0 && { unreadable }),
    cursor: next === undefined ? undefined : String(next),
  };
}

/** @throws OncekeyError `CONFIGURATION_INVALID` */
export function checkLimit(limit: number): void {
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE) return;
  throw configurationError("The list request", [`limit is a whole number from 1 to ${MAX_PAGE}`]);
}

export function foreignCursor(): OncekeyError<"CONFIGURATION_INVALID"> {
  return configurationError("The list request", ["cursor is not one that a page of this store gave"]);
}
