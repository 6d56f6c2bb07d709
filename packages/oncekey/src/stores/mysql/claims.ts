/**
 * @module
 * Claiming: insert first, then read who is there, both in one round trip for all requests of a turn.
 *
 * Who has won is read back, never counted: the row has the revision that this very statement drew. Whoever has not won gets
 * the record that was there, and the transitions of the core decide on it. A key that another transaction has just written
 * and not committed is in flight; its row can be seen by a read of uncommitted data, so nobody has to wait for it.
 */
import { systemClock } from "../../core/clock.js";
import { OncekeyError } from "../../core/errors.js";
import { compareFingerprints } from "../../core/fingerprint.js";
import type { RecordKey, StoredRecord } from "../../core/record.js";
import type { ClaimOutcome, ClaimRequest } from "../../core/store.js";
import { claimRecord } from "../../core/transitions.js";
import type { Asked, BatchPort } from "../batches.js";
import { changeRemotely, type Reading } from "../compare-and-set.js";
import type { RecordRow } from "../rows.js";
import { createServerClock, type ServerClock } from "../server-clock.js";
import type { Database } from "./database.js";
import { errnoOf, faultOf } from "./driver.js";
import { batchFaultOf } from "./faults.js";
import {
  heldTooLong,
  inTime,
  LONGEST_PAUSE_MS,
  NOW,
  nowOf,
  pause,
  type Records,
  readingOf,
  selectText,
  TOO_LATE,
} from "./records.js";
import { ALL, insertText, newRevision, SERVER_NOW } from "./rows.js";
import { withoutWaiting } from "./server.js";
import { literal } from "./sql.js";

/** What the statement found of one key. */
export type ClaimAnswer =
  | { readonly kind: "claimed"; readonly reading: () => Reading<number> }
  | { readonly kind: "met"; readonly reading: () => Reading<number> }
  /** Not committed yet, so nobody can say what it will be. */
  | { readonly kind: "being-written"; readonly outcome: ClaimOutcome };

interface Place {
  readonly database: Database;
  readonly clock: ServerClock;
}

export function claimBatches(database: Database): BatchPort<ClaimRequest, ClaimAnswer> {
  const place: Place = { database, clock: createServerClock() };
  return {
    keyOf: ({ key }) => key,
    bytesOf: ({ operation, label }) => 2 * (operation.length + (label?.length ?? 0)),
    send: (asked) => sendUnexpired(place, asked),
    alone: ({ request, endsAtMs }) => claimAlone(place, request, endsAtMs),
    // The others of a key come to the record that the first has left.
    judge: (_request, _first, answer) => (answer.kind === "claimed" ? { ...answer, kind: "met" } : answer),
    faultOf: batchFaultOf,
  };
}

/** What that answer means to whoever asked. A takeover is a second statement. */
export async function claimOutcome(
  records: Records,
  request: ClaimRequest,
  answer: ClaimAnswer,
): Promise<ClaimOutcome> {
  switch (answer.kind) {
    case "claimed":
      return { kind: "claimed", attempt: 1, takeover: false, compared: true };
    case "being-written":
      return answer.outcome;
    case "met":
      return claimMet(records, request, answer.reading());
    default:
      return answer satisfies never;
  }
}

/** A takeover that somebody's lock is in the way of can wait: whoever holds the row is alive. */
const TAKEOVER_PATIENCE_MS = 30;

async function claimMet(
  records: Records,
  request: ClaimRequest,
  first: Reading<number>,
): Promise<ClaimOutcome> {
  let met = first.record;
  try {
    const { outcome } = await changeRemotely(
      records.patient(TAKEOVER_PATIENCE_MS),
      request.key,
      (stored, nowMs) => {
        met = stored;
        return claimRecord(stored, request, nowMs);
      },
      first,
    );
    return outcome;
  } catch (error) {
    if (faultOf(error) !== "held") throw error;
    if (met === undefined) throw heldTooLong(error);
    // It is this very claim, whose lease counts as it did: somebody has its row, and nobody has its token.
    if (met.token === request.token && met.state === "claimed") {
      return { kind: "claimed", attempt: met.attempt, takeover: false, compared: true };
    }
    return inFlight(met, request, first.nowMs);
  }
}

/**
 * Sends those that are not over. The others are passed over, and asked for alone they are told that they come too late: a
 * statement carries one end for all of its rows, the latest.
 */
async function sendUnexpired(
  place: Place,
  asked: readonly Asked<ClaimRequest>[],
): Promise<readonly (ClaimAnswer | undefined)[]> {
  const sentAtMs = systemClock.monotonicMs();
  const fresh = asked.filter(({ endsAtMs }) => endsAtMs > sentAtMs);
  if (fresh.length === 0) throw overdue();
  const answers = await sendClaims(
    place,
    fresh.map(({ request }) => request),
    Math.max(...fresh.map(({ endsAtMs }) => endsAtMs)),
  );
  if (fresh.length === asked.length) return answers;
  const byEntry = new Map(fresh.map((entry, index) => [entry, answers[index]]));
  return asked.map((entry) => byEntry.get(entry));
}

async function sendClaims(
  place: Place,
  requests: readonly ClaimRequest[],
  endsAtMs: number,
): Promise<readonly (ClaimAnswer | undefined)[]> {
  try {
    return await insertInTime(place, requests, endsAtMs);
  } catch (error) {
    if (faultOf(error) !== "held") throw error;
    return lookPast(place, requests, endsAtMs);
  }
}

/** Too late by the server's clock, and in time by ours: the server's was set, or the end is near. It is looked at again. */
async function insertInTime(
  place: Place,
  requests: readonly ClaimRequest[],
  endsAtMs: number,
): Promise<readonly (ClaimAnswer | undefined)[]> {
  try {
    return await insertAndRead(place, requests, endsAtMs);
  } catch (error) {
    if (errnoOf(error) !== TOO_LATE) throw error;
    if (systemClock.monotonicMs() >= endsAtMs) throw tooLate(error);
  }
  const sentAtMs = systemClock.monotonicMs();
  const nowMs = nowOf((await place.database.ask(NOW)) as readonly RecordRow[]);
  place.clock.seen(nowMs, sentAtMs, systemClock.monotonicMs());
  try {
    return await insertAndRead(place, requests, endsAtMs);
  } catch (error) {
    throw errnoOf(error) === TOO_LATE ? tooLate(error) : error;
  }
}

/** An earlier attempt of the same call may have landed, so it is not said that nothing was claimed. */
function overdue(): OncekeyError<"STORE_UNAVAILABLE"> {
  const message = "The database was not asked in time: the claim waited too long for its turn. Try again.";
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000 });
}

function tooLate(cause: unknown): OncekeyError<"STORE_UNAVAILABLE"> {
  const message = "The database was reached too late. Nothing was claimed; try again.";
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause });
}

async function insertAndRead(
  { database, clock }: Place,
  requests: readonly ClaimRequest[],
  endsAtMs: number,
): Promise<readonly (ClaimAnswer | undefined)[]> {
  const { tables, ask, ready } = database;
  const { flavor } = await ready();
  const table = tables.records;
  const keys = requests.map(({ key }) => key);
  const revisions = requests.map(newRevision);
  const rows = requests.map((request, index) => [newRecord(request), revisions[index] ?? 0] as const);
  const insert = insertText(table, literal, rows, SERVER_NOW);
  const insertion = withoutWaiting(flavor, selectText(table, "1", keys), insert);
  const sentAtMs = systemClock.monotonicMs();
  const statements = [
    ...inTime({ table, keys, revisions }, clock.at(endsAtMs), insertion),
    NOW,
    selectText(table, ALL, keys),
  ];
  const results = (await ask(statements.join(";"))) as readonly (readonly RecordRow[])[];
  const nowMs = nowOf(results.at(-2) ?? []);
  clock.seen(nowMs, sentAtMs, systemClock.monotonicMs());
  const found = rowsByKey(results.at(-1) ?? []);
  return requests.map(({ key }, index) => {
    const row = found.get(key);
    // Removed between the two statements: it is asked again.
    if (row === undefined) return undefined;
    const mine = Number(row.revision) === revisions[index];
    return { kind: mine ? "claimed" : "met", reading: () => readingOf(row, nowMs) };
  });
}

/** A claim at the instant 0, which the statement replaces by the server's clock. */
function newRecord(request: ClaimRequest): StoredRecord {
  const { record } = claimRecord(undefined, request, 0);
  if (record === undefined) throw new TypeError("A claim of nothing makes a record");
  return record;
}

/** Some of the rows are being written by others: tells which these are, and claims the rest. */
async function lookPast(
  place: Place,
  requests: readonly ClaimRequest[],
  endsAtMs: number,
): Promise<readonly (ClaimAnswer | undefined)[]> {
  const { tables, ask } = place.database;
  const keys = requests.map(({ key }) => key);
  const uncommitted = "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED";
  const select = selectText(tables.records, ALL, keys);
  const results = (await ask(
    [uncommitted, select, NOW, select].join(";"),
  )) as readonly (readonly RecordRow[])[];
  const nowMs = nowOf(results[2] ?? []);
  const written = rowsByKey(results[1] ?? []);
  const committed = rowsByKey(results[3] ?? []);
  const answers = requests.map((request): ClaimAnswer | undefined => {
    const row = committed.get(request.key);
    if (row !== undefined) return { kind: "met", reading: () => readingOf(row, nowMs) };
    const inMaking = readingOf(written.get(request.key), nowMs).record;
    // The same claim on another connection: when that one has ended, this one finds it.
    if (inMaking?.token === request.token) return undefined;
    return inMaking && { kind: "being-written", outcome: inFlight(inMaking, request, nowMs) };
  });
  const free = requests.filter(({ key }, index) => answers[index] === undefined && !written.has(key));
  if (free.length === 0) return answers;
  const claimed = await insertInTime(place, free, endsAtMs).catch((error: unknown) => {
    if (faultOf(error) !== "held") throw error;
    return [];
  });
  const byKey = new Map(free.map(({ key }, index) => [key, claimed[index]]));
  return requests.map(({ key }, index) => answers[index] ?? byKey.get(key));
}

async function claimAlone(place: Place, request: ClaimRequest, endsAtMs: number): Promise<ClaimAnswer> {
  if (systemClock.monotonicMs() >= endsAtMs) throw overdue();
  for (;;) {
    const [answer] = await sendClaims(place, [request], endsAtMs);
    if (answer !== undefined) return answer;
    if (systemClock.monotonicMs() >= endsAtMs) throw heldTooLong(undefined);
    await pause(Math.random() * LONGEST_PAUSE_MS);
  }
}

/** How soon it is worth asking again for a record whose lease says nothing. */
const SOON_MS = 1_000;

/** Somebody has the row locked, so somebody is alive who holds it, whatever its lease says. */
function inFlight(record: StoredRecord, request: ClaimRequest, nowMs: number): ClaimOutcome {
  const remainingMs = record.leaseEndsAtMs - nowMs;
  return {
    kind: "in-flight",
    holder: record.token,
    remainingMs: remainingMs > 0 ? remainingMs : SOON_MS,
    compared: compareFingerprints(record.fingerprint, request.fingerprint) === "same",
  };
}

function rowsByKey(rows: readonly RecordRow[]): ReadonlyMap<RecordKey, RecordRow> {
  return new Map(rows.map((row) => [row.key as RecordKey, row]));
}
