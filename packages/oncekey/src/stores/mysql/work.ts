/**
 * @module
 * The steps of an exactly-once transaction: take a connection, and commit.
 *
 * The session runs with `autocommit=0`: its transaction begins with the work's first statement, and whatever ends it behind
 * our back, no later statement is committed by itself. A savepoint before the first statement that could end it (a stored
 * procedure) shows at the end whether it has. Invariant: rows are committed only together with the completion of the token
 * that they belong to. Who may do this when is left to `transaction.ts`.
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
import type { RecordRow } from "../rows.js";
import { completeInside, withoutCommit } from "./completing.js";
import type { Connections, Session } from "./connections.js";
import type { Database } from "./database.js";
import { errnoOf, faultOf } from "./driver.js";
import { lockText, readingOf, whileHeld } from "./records.js";
import { ALL, fittingOutcome } from "./rows.js";

/** What all transactions of a store share. */
export interface WorkPlace {
  readonly connections: Connections;
  readonly database: Database;
  readonly clock: Clock;
  /** How long one waits for a connection, and for each statement of ours. */
  readonly waitMs: number;
  /** The plain way of completing, for work that never used its transaction. */
  readonly complete: (request: CompleteRequest) => Promise<CompleteOutcome>;
  readonly opened: (transaction: OpenTransaction) => void;
  /** Called once for each opened transaction, whichever way it ended. */
  readonly ended: (transaction: OpenTransaction) => void;
}

export interface OpenTransaction {
  readonly request: TransactionRequest;
  abort(reason: string): void;
}

const SAVEPOINT = "oncekey_work";
const NO_SUCH_SAVEPOINT = 1305;
const DEADLOCK = 1213;

/** What the connections for work are set to when they are opened; the rest is as the application has it. */
export async function prepareWork(session: Session, isolation: string, waitMs: number): Promise<void> {
  const level = isolation.replace("-", " ").toUpperCase();
  await session.ask(`SET SESSION TRANSACTION ISOLATION LEVEL ${level}`, waitMs);
  await session.ask(`SET SESSION autocommit=0,wait_timeout=${IDLE_S}`, waitMs);
}

/** A transaction whose process has vanished ends after this at the latest, and so does a connection that nobody uses. */
const IDLE_S = 60;

/** The time limits that a session was set to last. */
const limits = new WeakMap<Session, number>();

/** Takes a connection, on which the next statement begins a transaction. */
export async function takeConnection(place: WorkPlace, maxTransactionMs: number): Promise<Session> {
  await place.database.ready();
  try {
    return await taken(place, maxTransactionMs);
  } catch (error) {
    // The server had dropped it while nobody used it; the next one is asked too.
    if (faultOf(error) !== "lost") throw error;
    return taken(place, maxTransactionMs);
  }
}

/** One that nobody has used for so long is asked whether it is still there, before work depends on it. */
const STALE_MS = 5_000;

async function taken({ connections, clock, waitMs }: WorkPlace, maxTransactionMs: number): Promise<Session> {
  const session = await connections.enter(waitMs);
  try {
    if (limits.get(session) !== maxTransactionMs) {
      const seconds = Math.ceil(maxTransactionMs / 1_000);
      const idle = Math.max(IDLE_S, 2 * seconds);
      await session.ask(`SET SESSION innodb_lock_wait_timeout=${seconds},wait_timeout=${idle}`, waitMs);
      limits.set(session, maxTransactionMs);
    } else if (clock.monotonicMs() - session.idleSinceMs > STALE_MS) {
      await session.ask("DO 0", waitMs);
    }
    return session;
  } catch (error) {
    session.broken = true;
    connections.leave(session);
    throw error;
  }
}

/** To be called before a statement that may end the transaction. */
export async function setSavepoint({ waitMs }: WorkPlace, session: Session): Promise<void> {
  await session.ask(`SAVEPOINT ${SAVEPOINT}`, waitMs);
}

/** The bit of a server's answers that says that a transaction is open. */
const IN_TRANSACTION = 1;

/** What an answer says of it; `undefined` for rows, with which no word on it comes. */
export function showsTransaction(result: unknown): boolean | undefined {
  const { serverStatus } = (result ?? {}) as { readonly serverStatus?: unknown };
  return typeof serverStatus === "number" ? (serverStatus & IN_TRANSACTION) !== 0 : undefined;
}

/** Asks whether the transaction has survived a statement that failed. */
async function isStillOpen({ waitMs }: WorkPlace, session: Session): Promise<boolean> {
  return showsTransaction(await session.ask("DO 0", waitMs)) === true;
}

/** Gives the connection back, rolled back unless it has committed; one that does not answer is dropped. */
export async function leave(
  { connections, waitMs }: WorkPlace,
  session: Session,
  committed: boolean,
): Promise<void> {
  if (!committed && !session.broken) {
    await session.ask("ROLLBACK", waitMs).catch(() => {
      session.broken = true;
    });
  }
  connections.leave(session);
}

/** Ends a connection on which a statement runs, also on the server, which would go on with it. */
export function drop({ database }: WorkPlace, session: Session): void {
  session.broken = true;
  const { threadId } = session.connection;
  if (threadId !== null) database.kill(threadId);
}

/** Some faults undo one statement, some the whole transaction, and some do the one or the other as the server is set up. */
export async function survives(
  place: WorkPlace,
  session: Session,
  begun: boolean,
  error: unknown,
): Promise<boolean> {
  if (errnoOf(error) === DEADLOCK || session.broken) return false;
  const fault = faultOf(error);
  if (fault === undefined) return true;
  if (fault === "lost") return false;
  return !begun || (await isStillOpen(place, session).catch(() => false));
}

/**
 * Completes the record and commits. Unless it answers `committed`, the caller rolls back.
 *
 * @param hasSavepoint whether one was set, which is gone if the transaction has been ended since.
 */
export async function commitWork(
  place: WorkPlace,
  session: Session,
  request: TransactionRequest,
  outcome: StoredOutcome,
  hasSavepoint: boolean,
): Promise<CommitOutcome> {
  const ask = (sql: string) => session.ask(sql, place.waitMs);
  try {
    if (hasSavepoint) await ask(`RELEASE SAVEPOINT ${SAVEPOINT}`);
  } catch (error) {
    // Part of the rows may have been committed, so nobody may say that nothing happened.
    return errnoOf(error) === NO_SUCH_SAVEPOINT ? { kind: "undecided" } : refused(error);
  }
  try {
    const server = await place.database.ready();
    const completion = { ...request, outcome: fittingOutcome(outcome, server.maxPacketBytes) };
    const otherwise = await completeInside(place.database.tables.records, ask, completion, server);
    if (otherwise !== undefined) return otherwise;
  } catch (error) {
    if (isOncekeyError(error) && !isOncekeyError(error, "STORE_UNAVAILABLE")) throw error;
    return refused(error);
  }
  try {
    await ask("COMMIT");
    return { kind: "committed" };
  } catch (error) {
    const fault = faultOf(error);
    // An answer of the server: it has not committed.
    if (fault !== undefined && fault !== "lost") return refused(error);
    return lookUp(place, session, request, error);
  }
}

/**
 * The answer to COMMIT was lost. The connection is ended, so that a COMMIT which has not arrived never will, and the record
 * is read behind whatever lock that transaction may still have.
 */
async function lookUp(
  place: WorkPlace,
  session: Session,
  request: TransactionRequest,
  cause: unknown,
): Promise<CommitOutcome> {
  const { database, waitMs } = place;
  drop(place, session);
  try {
    const { record } = await whileHeld(
      () =>
        database.within(async (ask) => {
          await ask("BEGIN");
          const select = lockText(database.tables.records, ALL, [request.key], "PRIMARY");
          const rows = (await ask(`${select} NOWAIT`)) as readonly RecordRow[];
          const reading = readingOf(rows[0], 0);
          await ask("COMMIT");
          return reading;
        }),
      waitMs,
    );
    if (record === undefined) return { kind: "undecided" };
    // Repeating the work would gain nothing: the claim is somebody else's.
    if (record.token !== request.token) return { kind: "replaced", by: undefined };
    return record.state === "completed" ? { kind: "committed" } : refused(cause);
  } catch {
    return { kind: "undecided" };
  }
}

function refused(error: unknown): CommitOutcome {
  return { kind: "refused", reason: messageOf(error) };
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

export function aborted(cause: unknown): OncekeyError<"TRANSACTION_ABORTED"> {
  const message = "MySQL rolled the transaction back. Nothing was kept; the work has to run again.";
  return new OncekeyError("TRANSACTION_ABORTED", message, { cause });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
