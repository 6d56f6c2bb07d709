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
import { KIB } from "../../core/limits.js";
import type { StoredOutcome } from "../../core/record.js";
import type { CommitOutcome, CompleteOutcome, TransactionRequest } from "../../core/store.js";
import { completeRecord } from "../../core/transitions.js";
import { encodeText } from "../rows.js";
import { createChanges, type Place } from "./changes.js";
import { recordOf } from "./codec.js";
import type { PostgresConnection } from "./driver.js";
import type { Endings } from "./endings.js";
import { isConnectionLost, sqlStateOf } from "./faults.js";

export interface WorkPlace extends Place {
  readonly endings: Endings;
}

/** The transaction that is to be committed. */
export interface OpenWork<Tx> {
  readonly connection: PostgresConnection<Tx>;
  /** Marks the transaction, so that a statement can tell whether it still runs in it. None: the connection is prepared to end it. */
  readonly mark: string | undefined;
}

/** A larger body goes as a parameter. */
const MAX_LITERAL_BYTES = 64 * KIB;

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
  const { connection, mark } = work;
  const alarm = systemClock.setTimer(connection.destroy, place.settings.timeoutMs);
  const isSmall = (outcome.body?.byteLength ?? 0) <= MAX_LITERAL_BYTES;
  try {
    const atOnce = mark === undefined && isSmall ? await endAtOnce(place, work, request, outcome) : undefined;
    const committed = atOnce ?? (await endStepByStep(place, work, request, outcome));
    if (committed.kind === "committed") place.ended(request.key);
    return committed;
  } finally {
    alarm.cancel();
  }
}

/** Completion and COMMIT in one round trip; `undefined` if there was nothing to complete, and the transaction goes on. */
async function endAtOnce<Tx>(
  place: WorkPlace,
  { connection }: OpenWork<Tx>,
  request: TransactionRequest,
  { head, body }: StoredOutcome,
): Promise<CommitOutcome | undefined> {
  const { key, token, retentionMs } = request;
  const bytes = body === undefined ? "NULL" : `E'\\\\x${Buffer.from(body).toString("hex")}'`;
  const texts = [key, token, encodeText(head)].map(literal);
  const statements = [
    // It can only be set inside the transaction, so one that has been ended by other means is noticed here.
    "SAVEPOINT oncekey_end",
    "SET LOCAL enable_seqscan = off",
    `EXECUTE oncekey_end(${texts[0]}, ${texts[1]}, ${Number(retentionMs)}, ${texts[2]}, ${bytes})`,
    "COMMIT",
  ];
  return committing(
    place,
    connection,
    request,
    () => connection.script(statements),
    async (error) => {
      if (sqlStateOf(error) !== "22012") return false;
      await connection.script(["ROLLBACK TO SAVEPOINT oncekey_end"]);
      return true;
    },
  );
}

/** Text that means the same whatever `standard_conforming_strings` is. */
function literal(text: string): string {
  return `E'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}

async function endStepByStep<Tx>(
  place: WorkPlace,
  work: OpenWork<Tx>,
  request: TransactionRequest,
  outcome: StoredOutcome,
): Promise<CommitOutcome> {
  const { connection } = work;
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
  }
  const committed = await committing(place, connection, request, connection.commit, async () => false);
  return committed ?? { kind: "undecided" };
}

/** Completes the record inside the transaction, if the token still holds it. */
async function completeInWork<Tx>(
  place: WorkPlace,
  { connection, mark }: OpenWork<Tx>,
  request: TransactionRequest,
  outcome: StoredOutcome,
): Promise<{ readonly kind: "completed" } | Exclude<CommitOutcome, { readonly kind: "committed" }>> {
  const { key, token, retentionMs } = request;
  if (mark !== undefined) {
    const params = [key, token, String(retentionMs), encodeText(outcome.head), outcome.body ?? null, mark];
    const [row] = await connection.query(place.statements.completeInWork, params);
    if (row?.[0] === "done") return { kind: "completed" };
    if (row?.[0] === "ended")
      return { kind: "refused", reason: "The transaction had ended before its commit" };
  } else {
    await connection.script(["SAVEPOINT oncekey_end"]);
  }
  // Gone, replaced, unknown: the transition tells, inside the same transaction.
  const { change } = createChanges({ ...place, run: connection.query, ended: () => undefined });
  const completion = { ...request, outcome };
  let kept = outcome;
  const answer = await change(
    key,
    (stored, nowMs) => {
      const completed = completeRecord(stored, completion, nowMs);
      kept = completed.record?.outcome ?? outcome;
      return completed;
    },
    { lock: "FOR NO KEY UPDATE" },
  );
  if (answer.kind !== "completed") return withoutCommit(answer);
  // An earlier commit of this token had landed: these rows would be a second set of them, and its result stays.
  return answer.how === "already"
    ? { kind: "replaced", by: { token, outcome: kept } }
    : { kind: "completed" };
}

function withoutCommit(
  answer: Exclude<CompleteOutcome, { readonly kind: "completed" }>,
): Exclude<CommitOutcome, { readonly kind: "committed" }> {
  if (answer.kind === "replaced") return { kind: "replaced", by: answer.by };
  return { kind: "refused", reason: "The store is full" };
}

/** @param goesOn whether the transaction goes on after an error, which is then not its end. */
async function committing<Tx>(
  place: WorkPlace,
  connection: PostgresConnection<Tx>,
  request: TransactionRequest,
  commit: () => Promise<string>,
  goesOn: (error: unknown) => Promise<boolean>,
): Promise<CommitOutcome | undefined> {
  try {
    const said = await commit();
    connection.free();
    if (said === "COMMIT") return { kind: "committed" };
    return { kind: "refused", reason: `The server answered COMMIT with ${said}` };
  } catch (error) {
    if (isConnectionLost(error)) {
      connection.destroy();
      return lookUp(place, request);
    }
    if (await goesOn(error).catch(() => false)) return undefined;
    // Somebody has thrown away what was prepared (DISCARD ALL): another connection has it.
    if (sqlStateOf(error) === "26000") connection.destroy();
    else await leave(connection);
    return { kind: "refused", reason: messageOf(error) };
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
