/**
 * @module
 * Paging through records for operators, by walking the keys of each server.
 *
 * There is no index: it would be one more write for each claim, and in a cluster on another server. A walk looks at every
 * key of the server once, a thousand per step, and sends only those in the states that are asked for; a page ends when it is
 * full, and soon at the latest, so it may be short and not the last. Invariants: pages follow the order of
 * `SCAN`, which shows every record that is there throughout, and none twice unless the server shrinks its table meanwhile;
 * what one step brings is on one page, so that a record that comes or goes moves no other. A key that holds something else
 * takes its place on the page, so that it hides none of the others.
 */
import { describeRecord, type RecordInfo, type RecordKey } from "../../core/record.js";
import type { ListRequest, RecordPage } from "../../core/store.js";
import { checkLimit, foreignCursor, PAGE_MS, type PageEntry, pageOf } from "../pages.js";
import type { RedisNode, RedisReply } from "./driver.js";
import { LETTERS } from "./layout.js";
import type { Glance } from "./reading.js";
import { type GlanceAt, glanceOf, type Records } from "./records.js";
import { SCRIPTS } from "./scripts.js";
import type { Wire } from "./wire.js";

/** Keys looked at in one step: about a millisecond of the server's time. */
const MOST_PER_STEP = 1_000;

export interface ListSource {
  readonly wire: Wire;
  readonly records: Records;
  readonly prefix: string;
  readonly nodes: () => Promise<readonly RedisNode[]>;
  readonly monotonicMs: () => number;
}

/** Where a walk goes on. */
interface Place {
  readonly node: number;
  /** The server's own cursor. */
  readonly scan: string;
  /** Shown already, of a place with more records than one page. */
  readonly shown: ReadonlySet<RecordKey>;
}

/** @throws OncekeyError `CONFIGURATION_INVALID` for a limit or a cursor that no page gave. */
export async function listRecords(source: ListSource, request: ListRequest): Promise<RecordPage> {
  const { limit, withinMs = PAGE_MS } = request;
  checkLimit(limit);
  await source.wire.ready();
  const walk: Walk = {
    source,
    request,
    limit,
    nodes: await source.nodes(),
    endsAtMs: source.monotonicMs() + withinMs,
    found: [],
    place: placeOf(request.cursor),
    count: Math.min(limit * 10, MOST_PER_STEP),
  };
  for (;;) {
    const node = walk.nodes[walk.place.node];
    if (node === undefined) return pageOf(walk.found, undefined);
    const page = await advance(walk, node);
    if (page !== undefined) return page;
  }
}

/** A page in the making. */
interface Walk {
  readonly source: ListSource;
  readonly request: ListRequest;
  readonly limit: number;
  readonly nodes: readonly RedisNode[];
  readonly endsAtMs: number;
  readonly found: PageEntry[];
  place: Place;
  /** Keys to look at in the next step. */
  count: number;
}

/** Takes one step; the page, if it ends with it. */
async function advance(walk: Walk, node: RedisNode): Promise<RecordPage | undefined> {
  const { source, request, limit, found, place, count } = walk;
  const { next, matches } = await step(source, request, node, place, count);
  const room = limit - found.length;
  if (matches.length > room) {
    // Not half of a step: what comes and goes meanwhile would move the rest.
    if (found.length > 0) return pageOf(found, cursorOf(place));
    if (count === 1) return partOf(matches, limit, place);
    walk.count = Math.max(1, count >> 2);
    return undefined;
  }
  found.push(...matches);
  walk.place = next === "0" ? { ...place, node: place.node + 1, scan: "0" } : { ...place, scan: next };
  if (matches.length * 2 < room) walk.count = Math.min(count * 4, MOST_PER_STEP);
  const over = found.length === limit || source.monotonicMs() >= walk.endsAtMs;
  if (!over) return undefined;
  return pageOf(found, walk.place.node < walk.nodes.length ? cursorOf(walk.place) : undefined);
}

async function step(
  { wire, records, prefix }: ListSource,
  request: ListRequest,
  node: RedisNode,
  { scan, shown }: Place,
  count: number,
): Promise<{ readonly next: string; readonly matches: readonly PageEntry[] }> {
  const args = [scan, patternOf(prefix), String(count), lettersOf(request)];
  const [cursor, names, found, now] = (await wire.scriptOn(
    node,
    SCRIPTS.walk,
    args,
  )) as readonly RedisReply[];
  const matches = (names as readonly RedisReply[]).flatMap((name, index) => {
    const key = records.keyOf(String(name));
    if (shown.has(key)) return [];
    const glance = glanceOf(key, (found as readonly RedisReply[])[index]);
    return listed(key, { glance, nowMs: Number(now) }, request);
  });
  return { next: String(cursor), matches };
}

function listed(key: RecordKey, found: GlanceAt, request: ListRequest): readonly PageEntry[] {
  if (found.glance === undefined) return [];
  if (found.glance === "unreadable") return [{ unreadable: key }];
  const info = infoOf(found.glance, found.nowMs);
  const { scopeId, operation, state, olderThanMs } = request;
  const fits =
    (scopeId === undefined || info.scopeId === scopeId) &&
    (operation === undefined || info.operation === operation) &&
    (state === undefined || (state === "lapsed" ? info.lapsed : info.state === state)) &&
    (olderThanMs === undefined || info.inStateMs >= olderThanMs);
  return fits ? [info] : [];
}

/** A record without its result, as an operator sees it. */
export function infoOf({ record, bodyBytes }: Glance, nowMs: number): RecordInfo {
  const tombstone = record.state === "completed" && bodyBytes === undefined;
  return { ...describeRecord(record, nowMs), tombstone, resultBytes: bodyBytes ?? 0 };
}

/** One place of the server's table holds more than a page takes. */
function partOf(matches: readonly PageEntry[], limit: number, place: Place): RecordPage {
  const part = matches.slice(0, limit);
  const keys = part.map((one) => ("unreadable" in one ? one.unreadable : one.key));
  return pageOf(part, cursorOf({ ...place, shown: new Set([...place.shown, ...keys]) }));
}

function lettersOf({ state }: ListRequest): string {
  if (state === undefined) return Object.values(LETTERS).join("");
  return LETTERS[state === "lapsed" ? "claimed" : state];
}

/** The prefix as it is, then anything. */
function patternOf(prefix: string): string {
  return `${prefix.replace(/[\\*?[\]^]/g, "\\$&")}*`;
}

function placeOf(cursor: string | undefined): Place {
  if (cursor === undefined) return { node: 0, scan: "0", shown: new Set() };
  const [node, scan, ...shown] = partsOf(cursor);
  if (/^\d{1,5}$/.test(String(node)) && /^\d{1,20}$/.test(String(scan))) {
    return { node: Number(node), scan: String(scan), shown: new Set(shown.map(String) as RecordKey[]) };
  }
  throw foreignCursor();
}

/** Keys of others under the prefix may hold anything, so nothing can stand between them as it is. */
function cursorOf({ node, scan, shown }: Place): string {
  return Buffer.from(JSON.stringify([node, scan, ...shown])).toString("base64url");
}

function partsOf(cursor: string): readonly unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    return Array.isArray(parts) ? parts : [];
  } catch {
    return [];
  }
}
