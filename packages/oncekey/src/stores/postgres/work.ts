/**
 * @module
 * The end of an exactly-once transaction: completion and commit, and which of the three results it had.
 *
 * Invariants: rows are committed only together with the completion of the token that they belong to. *Committed* is what the
 * server calls COMMIT (an aborted transaction answers ROLLBACK, without an error). *Refused* is what it refused, or was never
 * asked. *Unknown* is a connection that was lost at COMMIT: the record itself then tells, once nobody holds it any more.
 */
import { systemClock } from "../../core/clock.js";
import { isOncekeyError } from "../../core/errors.js";
import type { StoredOutcome } from "../../core/record.js";
import type { CommitOutcome, CompleteOutcome, TransactionRequest } from "../../core/store.js";
import { completeRecord } from "../../core/transitions.js";
import { encodeText } from "../rows.js";
import { createChanges, type Place } from "./changes.js";
import { recordOf } from "./codec.js";
import type { PostgresConnection } from "./driver.js";
import type { Endings } from "./endings.js";
import { isConnectionLost } from "./faults.js";

export interface WorkPlace extends Place {
  readonly endings: Endings;
}

/** The transaction that is to be committed. */
export interface OpenWork<Tx> {
  readonly connection: PostgresConnection<Tx>;
  readonly mark: string;
}

/** How long one waits between two looks at a record whose server cannot be reached. */
const LOOK_AGAIN_MS = 100;

/** Rolls back and gives the connection back; one that is lost, or that does not obey, is destroyed. */
export async function leave<Tx>(connection: PostgresConnection<Tx>): Promise<void> {
  try {
    if (connection.isLost()) connection.destroy();
    else await connection.rollback();
    connection.free();
  } catch {
    connection.destroy();
  }
}

export async function commitWork<Tx>(
  place: WorkPlace,
  work: OpenWork<Tx>,
  request: TransactionRequest,
  outcome: StoredOutcome,
): Promise<CommitOutcome> {
  const { connection } = work;
  const alarm = systemClock.setTimer(connection.destroy, place.settings.timeoutMs);
  try {
    const completed = await completeInWork(place, work, request, outcome);
    if (completed.kind !== "completed") {
      await leave(connection);
      return completed;
    }
  } catch (error) {
    // COMMIT was not sent, so nothing happens whatever became of the rest.
    await leave(connection);
    if (isOncekeyError(error, "RECORD_UNREADABLE")) throw error;
    return { kind: "refused", reason: messageOf(error) };
  } finally {
    alarm.cancel();
  }
  const committed = await commitNow(place, connection, request);
  if (committed.kind === "committed") place.ended(request.key);
  return committed;
}

/** Completes the record inside the transaction, if the token still holds it. */
async function completeInWork<Tx>(
  { statements, clock }: WorkPlace,
  { connection, mark }: OpenWork<Tx>,
  request: TransactionRequest,
  outcome: StoredOutcome,
): Promise<{ readonly kind: "completed" } | Exclude<CommitOutcome, { readonly kind: "committed" }>> {
  const { key, token, retentionMs } = request;
  const [row] = await connection.query(statements.completeInWork, [
    key,
    token,
    String(retentionMs),
    encodeText(outcome.head),
    outcome.body ?? null,
    mark,
  ]);
  if (row?.[0] === "done") return { kind: "completed" };
  if (row?.[0] === "ended") return { kind: "refused", reason: "The transaction had ended before its commit" };
  // Gone, replaced, unknown: the transition tells, inside the same transaction.
  const { change } = createChanges(connection.query, statements, clock, () => undefined);
  const completion = { ...request, outcome };
  const answer = await change(key, (stored, nowMs) => completeRecord(stored, completion, nowMs), {
    lock: "FOR NO KEY UPDATE",
  });
  if (answer.kind !== "completed") return withoutCommit(answer);
  // An earlier commit of this token had landed: these rows would be a second set of them.
  return answer.how === "already" ? { kind: "replaced", by: { token, outcome } } : { kind: "completed" };
}

function withoutCommit(
  answer: Exclude<CompleteOutcome, { readonly kind: "completed" }>,
): Exclude<CommitOutcome, { readonly kind: "committed" }> {
  if (answer.kind === "replaced") return { kind: "replaced", by: answer.by };
  return { kind: "refused", reason: "The store is full" };
}

async function commitNow<Tx>(
  place: WorkPlace,
  connection: PostgresConnection<Tx>,
  request: TransactionRequest,
): Promise<CommitOutcome> {
  const alarm = systemClock.setTimer(connection.destroy, place.settings.timeoutMs);
  try {
    const said = await connection.commit();
    connection.free();
    if (said === "COMMIT") return { kind: "committed" };
    return { kind: "refused", reason: `The server answered COMMIT with ${said}` };
  } catch (error) {
    if (!isConnectionLost(error)) {
      connection.free();
      return { kind: "refused", reason: messageOf(error) };
    }
    connection.destroy();
    return lookUp(place, request);
  } finally {
    alarm.cancel();
  }
}

/** Waits until no transaction holds the record (the lost one has ended then, whichever way), and reads it. */
async function lookUp(
  { statements, run, settings }: WorkPlace,
  { key, token }: TransactionRequest,
): Promise<CommitOutcome> {
  const endsAtMs = systemClock.monotonicMs() + settings.timeoutMs;
  while (systemClock.monotonicMs() < endsAtMs) {
    try {
      const [row = []] = await run(statements.settle, [key]);
      const record = recordOf(row.slice(1))?.record;
      if (record === undefined) return { kind: "undecided" };
      if (record.token !== token) return { kind: "replaced", by: undefined };
      if (record.state === "completed") return { kind: "committed" };
      return { kind: "refused", reason: "The connection was lost before the server had committed" };
    } catch {
      await new Promise<void>((resolve) => void systemClock.setTimer(resolve, LOOK_AGAIN_MS));
    }
  }
  return { kind: "undecided" };
}

/** For work that left no rows: the completion goes the way of all others. */
export async function completePlainly(
  { endings }: WorkPlace,
  request: TransactionRequest,
  outcome: StoredOutcome,
): Promise<CommitOutcome> {
  const answer = await endings.complete({ ...request, outcome });
  return answer.kind === "completed" ? { kind: "committed" } : withoutCommit(answer);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
