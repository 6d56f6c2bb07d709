/**
 * @module
 * Records inside a transaction that the application holds: claimed, completed and committed with whatever else it writes.
 *
 * Invariants: the application's transaction is never begun, committed or rolled back here, save to a savepoint. Rows are
 * read without a lock, and locked only to be written, so that looking at a key does not hold up whoever has it. No statement
 * waits in the database: a row that somebody has is asked for again until the wait is over. What a snapshot does not
 * show, and what stands there nevertheless, means that the transaction has to be repeated.
 */
import { systemClock } from "../../core/clock.js";
import type { StoredRecord } from "../../core/record.js";
import type {
  ClaimRequest,
  CompleteRequest,
  JoinedClaimOutcome,
  JoinedTransaction,
  Savepoint,
} from "../../core/store.js";
import { claimRecord } from "../../core/transitions.js";
import type { Reading } from "../compare-and-set.js";
import {
  type Caller,
  callerOf,
  type MysqlCallerTransaction,
  outsideTransaction,
  RowHeld,
  retryTransaction,
  SavepointGone,
} from "./caller.js";
import type { Database } from "./database.js";
import { completionInCall, type JoinStatements, joinStatements, readingsOf } from "./join-statements.js";
import { LONGEST_PAUSE_MS, pause } from "./records.js";
import { newRevision } from "./rows.js";
import { aborted } from "./work.js";

/** Records that change under every look are somebody else's to decide on. */
const MAX_ROUNDS = 4;

interface Joined {
  readonly caller: Caller;
  readonly database: Database;
  /** The savepoints that are open, the last one made last. */
  readonly savepoints: string[];
  /** Whether it was seen that there is a transaction. */
  inside: boolean;
}

export function joinTransaction(database: Database, transaction: MysqlCallerTransaction): JoinedTransaction {
  const joined: Joined = { caller: callerOf(transaction), database, savepoints: [], inside: false };
  return {
    handle: joined.caller.handle,
    savepoint: () => openSavepoint(joined),
    claim: (requests, waitMs) => claimAll(joined, requests, waitMs),
    complete: (requests) => completeAll(joined, requests),
  };
}

let made = 0;

async function openSavepoint(joined: Joined): Promise<Savepoint> {
  made += 1;
  const name = `oncekey_${made}`;
  await joined.caller.ask(`SAVEPOINT ${name}`);
  if (!joined.inside) await makeSureOfTransaction(joined, name);
  joined.savepoints.push(name);
  const end = async (...statements: readonly string[]): Promise<void> => {
    for (const statement of statements) await orAborted(joined.caller.ask(statement));
    joined.savepoints.splice(joined.savepoints.indexOf(name));
  };
  return {
    release: () => end(`RELEASE SAVEPOINT ${name}`),
    rollback: () => end(`ROLLBACK TO SAVEPOINT ${name}`, `RELEASE SAVEPOINT ${name}`),
  };
}

/** Outside a transaction a savepoint is gone as soon as it is made. */
async function makeSureOfTransaction(joined: Joined, name: string): Promise<void> {
  try {
    await joined.caller.ask(`ROLLBACK TO SAVEPOINT ${name}`);
  } catch (error) {
    throw error instanceof SavepointGone ? outsideTransaction() : error;
  }
  joined.inside = true;
}

/** A savepoint that was there and is not any more: the server, or the work, has ended the transaction. */
async function orAborted<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    throw error instanceof SavepointGone ? aborted(error.cause) : error;
  }
}

async function claimAll(
  joined: Joined,
  requests: readonly ClaimRequest[],
  waitMs: number,
): Promise<readonly JoinedClaimOutcome[]> {
  const endsAtMs = systemClock.monotonicMs() + waitMs;
  const server = await joined.database.ready();
  const statements = joinStatements(joined.database.tables, server);
  const restore = await statements.boundWaits(joined.caller);
  try {
    for (;;) {
      try {
        return await claimOnce(joined, statements, requests);
      } catch (error) {
        if (!(error instanceof RowHeld)) throw error;
      }
      // Some servers undo the whole transaction when a wait ends, which shows here.
      const last = joined.savepoints.at(-1);
      if (last !== undefined) await orAborted(joined.caller.ask(`ROLLBACK TO SAVEPOINT ${last}`));
      if (systemClock.monotonicMs() >= endsAtMs) return requests.map(() => ({ kind: "contended" }));
      await pause(Math.random() * LONGEST_PAUSE_MS);
    }
  } finally {
    await restore();
  }
}

/** @throws RowHeld if somebody has one of the keys. */
async function claimOnce(
  { caller }: Joined,
  statements: JoinStatements,
  requests: readonly ClaimRequest[],
): Promise<readonly JoinedClaimOutcome[]> {
  const outcomes = new Map<string, JoinedClaimOutcome>();
  let left = [...requests].sort((a, b) => (a.key < b.key ? -1 : 1));
  for (let round = 0; left.length > 0 && round < MAX_ROUNDS; round += 1) {
    const found = await readAll(caller, statements, left);
    const absent = left.filter(({ key }) => found.get(key)?.record === undefined);
    for (const [key, reading] of await insertAll(caller, statements, absent, outcomes))
      found.set(key, reading);
    for (const request of left) {
      const reading = found.get(request.key);
      if (outcomes.has(request.key) || reading === undefined) continue;
      const outcome = await decide(caller, statements, request, reading);
      if (outcome !== undefined) outcomes.set(request.key, outcome);
    }
    left = left.filter(({ key }) => !outcomes.has(key));
  }
  if (left.length > 0) throw retryTransaction();
  return requests.map(({ key }) => outcomes.get(key) ?? { kind: "contended" });
}

type Readings = Map<string, Reading<number>>;

async function readAll(
  caller: Caller,
  statements: JoinStatements,
  requests: readonly ClaimRequest[],
): Promise<Readings> {
  const { sql, values } = statements.read(requests.map(({ key }) => key));
  return readingsOf(await caller.ask(sql, values));
}

/** @returns what stands where the record of another was found; what was claimed goes to `outcomes`. */
async function insertAll(
  caller: Caller,
  statements: JoinStatements,
  requests: readonly ClaimRequest[],
  outcomes: Map<string, JoinedClaimOutcome>,
): Promise<Readings> {
  if (requests.length === 0) return new Map();
  const rows = requests.map((request) => [claimAtZero(request), newRevision()] as const);
  for (const { sql, values } of statements.insert(rows)) await caller.ask(sql, values);
  const found = await readAll(caller, statements, requests);
  for (const [{ key }, revision] of rows) {
    if (found.get(key)?.revision !== revision) continue;
    outcomes.set(key, { kind: "claimed", attempt: 1, takeover: false, compared: true });
  }
  return found;
}

/** A claim at the instant 0, which the statement replaces by the server's clock. */
function claimAtZero(request: ClaimRequest): StoredRecord {
  const { record } = claimRecord(undefined, request, 0);
  if (record === undefined) throw new TypeError("A claim of nothing makes a record");
  return record;
}

/** `undefined`: the record is not what was read any more. */
async function decide(
  caller: Caller,
  statements: JoinStatements,
  request: ClaimRequest,
  { record: before, revision, nowMs }: Reading<number>,
): Promise<JoinedClaimOutcome | undefined> {
  if (revision === undefined) return undefined;
  const { outcome, record: after } = claimRecord(before, request, nowMs);
  if (after === before || after === undefined) return outcome;
  // A lapsed claim, an attempt that is counted, or a record that has expired and is still there.
  const next = newRevision();
  for (const { sql, values } of statements.takeOver(after, revision, next)) await caller.ask(sql, values);
  const found = await readAll(caller, statements, [request]);
  return found.get(request.key)?.revision === next ? outcome : undefined;
}

async function completeAll(
  { caller, database }: Joined,
  requests: readonly CompleteRequest[],
): Promise<void> {
  const server = await database.ready();
  const { readRevision } = joinStatements(database.tables, server);
  for (const request of requests) {
    const revision = newRevision();
    const { sql, values } = completionInCall(database.tables, server, request, revision);
    await caller.ask(sql, values);
    const look = readRevision(request.key);
    const [found] = await caller.ask(look.sql, look.values);
    if (found !== String(revision)) throw aborted(new Error("The claim is not in this transaction any more"));
  }
}
