/**
 * @module
 * Exactly-once work: its rows and its completion in one transaction, on a connection of the store's own.
 *
 * It begins with the work's first statement. The claim has been committed before, with its lease, so nobody waits for this
 * transaction; its last statement completes the record, and if the token no longer holds the key, everything is rolled back.
 *
 * Invariants: ends exactly once; never open for longer than `maxTransactionMs`; after a lost connection no statement runs outside
 * it. Committing, and what its three results are, is left to `work.ts`.
 */
import { systemClock, type Timer } from "../../core/clock.js";
import { isOncekeyError, OncekeyError } from "../../core/errors.js";
import type { StoredOutcome } from "../../core/record.js";
import type { CommitOutcome, TransactionRequest, TransactionSession } from "../../core/store.js";
import type { PostgresConnection, PostgresDriver } from "./driver.js";
import { endsSession, isRepeatable, unavailable } from "./faults.js";
import { commitWork, completePlainly, leave, messageOf, type WorkPlace } from "./work.js";

export interface SessionPlace<Tx> extends WorkPlace {
  readonly driver: PostgresDriver<Tx>;
  /** Waits for one of the connections for work. */
  readonly take: () => Promise<PostgresConnection<Tx>>;
}

interface Open<Tx> {
  readonly kind: "open";
  readonly connection: PostgresConnection<Tx>;
  readonly mark: string | undefined;
  readonly timer: Timer;
}

type Phase<Tx> =
  | { readonly kind: "unused" }
  | { readonly kind: "opening"; readonly opening: Promise<void> }
  | Open<Tx>
  /** Rolled back although the work had not ended. */
  | { readonly kind: "aborted"; readonly error: OncekeyError }
  | { readonly kind: "closed" };

export function beginSession<Tx>(
  place: SessionPlace<Tx>,
  request: TransactionRequest,
): TransactionSession<Tx> {
  const outstanding = createOutstanding();
  let phase: Phase<Tx> = { kind: "unused" };
  let used = false;

  async function begin(): Promise<void> {
    try {
      const connection = await place.take();
      const mark = await started(connection, place, request);
      if (phase.kind !== "opening") {
        await leave(connection);
        throw closed("it has ended");
      }
      const timer = systemClock.setTimer(tooOld, request.maxTransactionMs);
      phase = { kind: "open", connection, mark, timer };
    } catch (cause) {
      const error = unavailable(cause);
      if (phase.kind === "opening") phase = { kind: "aborted", error };
      throw error;
    }
  }

  function tooOld(): void {
    const reason = `it was open for longer than ${request.maxTransactionMs} ms and was rolled back`;
    void end({ kind: "aborted", error: closed(reason) });
  }

  /** Whatever has not been committed is rolled back. */
  async function end(next: Phase<Tx>): Promise<void> {
    const before = phase;
    phase = next;
    if (before.kind !== "open") return;
    before.timer.cancel();
    // A connection that is still busy cannot be told to roll back: losing it does the same.
    if (outstanding.count() > 0) before.connection.destroy();
    else await leave(before.connection);
  }

  async function takeOpen(): Promise<PostgresConnection<Tx>> {
    if (phase.kind === "unused") phase = { kind: "opening", opening: begin() };
    if (phase.kind === "opening") await phase.opening;
    if (phase.kind === "aborted") throw phase.error;
    if (phase.kind !== "open") throw closed("it has ended");
    if (phase.connection.isLost()) throw await lost();
    return phase.connection;
  }

  async function statement<T>(perform: (client: Tx) => Promise<T>): Promise<T> {
    const connection = await takeOpen();
    used = true;
    try {
      return await perform(connection.client);
    } catch (error) {
      // Not by the error alone: a client also throws errors of its own, on parameters that it cannot send.
      throw connection.isLost() || endsSession(error) ? await lost(error) : error;
    }
  }

  async function lost(cause?: unknown): Promise<OncekeyError> {
    // It may have been ended here, and so lost.
    if (phase.kind === "aborted") return phase.error;
    const message =
      "The connection was lost in the transaction. Nothing was kept; the work has to run again.";
    const error = new OncekeyError("TRANSACTION_ABORTED", message, { cause });
    if (phase.kind === "open") await end({ kind: "aborted", error });
    return error;
  }

  async function commit(outcome: StoredOutcome, what: "everything" | "record"): Promise<CommitOutcome> {
    // A statement that the work did not await belongs to the transaction all the same.
    await outstanding.settled();
    const before = phase;
    phase = { kind: "closed" };
    return commitPhase(place, before, request, outcome, what);
  }

  return {
    handle: place.driver.handle((perform) => outstanding.add(statement(perform))),
    used: () => used,
    undoneBy: outstanding.undoneBy,
    commit,
    rollback: () => end({ kind: "closed" }),
  };
}

async function commitPhase<Tx>(
  place: SessionPlace<Tx>,
  phase: Phase<Tx>,
  request: TransactionRequest,
  outcome: StoredOutcome,
  what: "everything" | "record",
): Promise<CommitOutcome> {
  switch (phase.kind) {
    case "unused":
      return completePlainly(place, request, outcome);
    case "open":
      phase.timer.cancel();
      if (what === "everything") return commitWork(place, phase, request, outcome);
      await leave(phase.connection);
      return completePlainly(place, request, outcome);
    case "aborted":
      return { kind: "refused", reason: messageOf(phase.error) };
    default:
      throw closed("it has ended");
  }
}

/**
 * A connection of our own keeps its bounds, and the statement that ends its transactions; through a pooler the next transaction
 * may meet another session.
 */
async function started<Tx>(
  connection: PostgresConnection<Tx>,
  { driver, settings, statements }: SessionPlace<Tx>,
  { maxTransactionMs }: TransactionRequest,
): Promise<string | undefined> {
  const atMost = Math.ceil(maxTransactionMs);
  const bounds = (how: "SET" | "SET LOCAL"): string[] => [
    `${how} statement_timeout = ${atMost}`,
    `${how} idle_in_transaction_session_timeout = ${atMost}`,
  ];
  try {
    if (driver.hasSessions && !settings.pooler) {
      const { session } = connection;
      const isNew = session.boundMs === undefined;
      if (session.boundMs !== atMost) {
        await connection.script([...bounds("SET"), ...(isNew ? [statements.prepareEnd] : [])]);
        session.boundMs = atMost;
      }
      await connection.begin([]);
      return undefined;
    }
    const mark = crypto.randomUUID();
    const local = driver.hasSessions ? bounds("SET LOCAL") : [];
    await connection.begin([...local, `SET LOCAL oncekey.transaction = '${mark}'`]);
    return mark;
  } catch (error) {
    connection.destroy();
    throw error;
  }
}

/** The statements that have not ended, and how the last one that has went. */
function createOutstanding() {
  const pending = new Set<Promise<unknown>>();
  let undone: string | undefined;
  return {
    count: () => pending.size,
    /** Nothing, once a statement has succeeded after all, behind a savepoint of the work's own. */
    undoneBy: () => undone,
    add<T>(statement: Promise<T>): Promise<T> {
      const done = (why?: string): void => {
        pending.delete(statement);
        undone = why;
      };
      pending.add(statement);
      statement.then(
        () => done(),
        (error) => done(undoes(error) ? messageOf(error) : undone),
      );
      return statement;
    },
    async settled(): Promise<void> {
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}

function undoes(error: unknown): boolean {
  return isRepeatable(error) || isOncekeyError(error, "TRANSACTION_ABORTED");
}

function closed(reason: string): OncekeyError<"TRANSACTION_CLOSED"> {
  const message = `The transaction takes no more statements: ${reason}. Await every statement inside the work.`;
  return new OncekeyError("TRANSACTION_CLOSED", message);
}
