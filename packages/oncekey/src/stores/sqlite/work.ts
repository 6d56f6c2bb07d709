/**
 * @module
 * The steps of an exactly-once transaction on the work connection: take the file, and commit.
 *
 * The work's rows stand behind a savepoint. It is what `"record"` goes back to, and its absence at the end
 * shows that somebody ended the transaction behind our back. Invariant: rows are committed only together
 * with the completion of the token that they belong to. Who may do this when is left to `transaction.ts`.
 */
import type { Clock } from "../../core/clock.js";
import { isOncekeyError, OncekeyError } from "../../core/errors.js";
import type { StoredOutcome } from "../../core/record.js";
import type {
  CommitOutcome,
  CompleteOutcome,
  CompleteRequest,
  TransactionRequest,
} from "../../core/store.js";
import { completeRecord } from "../../core/transitions.js";
import type { Moment } from "./clocks.js";
import { rollBack, type SqliteConnection } from "./driver.js";
import { whileBusy } from "./pace.js";
import type { Records } from "./statements.js";
import type { Leave, Turns } from "./turns.js";

/** What all transactions of a store share. */
export interface WorkPlace {
  readonly connection: SqliteConnection;
  readonly records: Records;
  readonly clock: Clock;
  readonly moment: () => Moment;
  readonly turns: Turns;
  /** How long one waits for its turn, and then for the file. */
  readonly waitMs: number;
  /** Makes sure that the file is ready, and that the store is open. */
  readonly ready: () => Promise<void>;
  /** The plain way of completing, for work that never used its transaction. */
  readonly complete: (request: CompleteRequest) => Promise<CompleteOutcome>;
  /** Looks a record's completion up with the other connection. */
  readonly isCompletedBy: (request: TransactionRequest) => boolean;
  /** Called as soon as the file is taken. */
  readonly opened: (transaction: OpenTransaction) => void;
  /** Called once for each opened transaction, when the file is free again, whichever way it ended. */
  readonly ended: (transaction: OpenTransaction) => void;
}

export interface OpenTransaction {
  readonly request: TransactionRequest;
  abort(reason: string): void;
}

const SAVEPOINT = "oncekey_work";

/**
 * Waits for the turn and for the file, and takes both.
 *
 * @param wanted whether the transaction is still wanted; if not, it gives up.
 */
export async function takeFile(place: WorkPlace, wanted: () => boolean): Promise<Leave> {
  const { connection, waitMs } = place;
  const leave = await place.turns.enter(waitMs);
  try {
    await place.ready();
    await whileBusy(() => connection.exec("BEGIN IMMEDIATE"), waitMs, wanted);
    if (!wanted()) throw closed("it has ended");
    connection.exec(`SAVEPOINT ${SAVEPOINT}`);
    return leave;
  } catch (error) {
    rollBack(connection);
    leave();
    throw error;
  }
}

/** Completes the record and commits. Unless it answers `committed`, the caller rolls back. */
export function commitWork(
  place: WorkPlace,
  request: TransactionRequest,
  outcome: StoredOutcome,
  what: "everything" | "record",
): CommitOutcome {
  const { connection, records } = place;
  try {
    connection.exec(what === "record" ? `ROLLBACK TO ${SAVEPOINT}` : `RELEASE ${SAVEPOINT}`);
    const completion: CompleteRequest = { ...request, outcome };
    const { outcome: answer, record } = records.apply(
      request.key,
      (stored, nowMs) => completeRecord(stored, completion, nowMs),
      place.moment(),
    );
    if (answer.kind !== "completed") return withoutCommit(answer);
    if (answer.how === "already" && record?.outcome !== undefined) {
      // An earlier commit of this token had landed: these rows would be a second set of them.
      return { kind: "replaced", by: { token: request.token, outcome: record.outcome } };
    }
    connection.exec("COMMIT");
    return { kind: "committed" };
  } catch (error) {
    if (isOncekeyError(error)) throw error;
    return afterFailure(place, request, error);
  }
}

function withoutCommit(answer: Exclude<CompleteOutcome, { readonly kind: "completed" }>): CommitOutcome {
  if (answer.kind === "replaced") return { kind: "replaced", by: answer.by };
  return { kind: "refused", reason: "The store is full" };
}

/** A statement or the COMMIT failed. Still inside the transaction, nothing has happened; else the file knows. */
function afterFailure(place: WorkPlace, request: TransactionRequest, error: unknown): CommitOutcome {
  const refused = { kind: "refused", reason: messageOf(error) } as const;
  if (place.connection.inTransaction()) return refused;
  try {
    return place.isCompletedBy(request) ? { kind: "committed" } : refused;
  } catch {
    return { kind: "undecided" };
  }
}

/** For work that never used its transaction: there are no rows, so the completion goes the way of all others. */
export async function completePlainly(
  place: WorkPlace,
  request: TransactionRequest,
  outcome: StoredOutcome,
): Promise<CommitOutcome> {
  const answer = await place.complete({ ...request, outcome });
  return answer.kind === "completed" ? { kind: "committed" } : withoutCommit(answer);
}

export function closed(reason: string): OncekeyError<"TRANSACTION_CLOSED"> {
  const message = `The transaction takes no more statements: ${reason}. Await every statement inside the work.`;
  return new OncekeyError("TRANSACTION_CLOSED", message);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
