/**
 * @module
 * Exactly-once work: its rows and its completion in one transaction of the file.
 *
 * It begins with the work's first statement and takes the file's write lock then (`BEGIN IMMEDIATE`), so
 * nothing that the work reads can change before it commits. The completion is its last statement; if the
 * token no longer holds the key, everything is rolled back.
 *
 * Invariants: one at a time; never longer than `maxTransactionMs`; ends exactly once. Waiting (for the turn,
 * for the file) never blocks the event loop.
 */
import type { Timer } from "../../core/clock.js";
import { OncekeyError } from "../../core/errors.js";
import type { StoredOutcome } from "../../core/record.js";
import type { CommitOutcome, TransactionRequest, TransactionSession } from "../../core/store.js";
import {
  rollBack,
  type SqliteChanges,
  type SqliteRow,
  type SqliteStatement,
  type SqliteValue,
} from "./driver.js";
import { unavailable } from "./pace.js";
import { checkedParams, checkedSql } from "./sql-text.js";
import type { Leave } from "./turns.js";
import {
  closed,
  commitWork,
  completePlainly,
  messageOf,
  type OpenTransaction,
  takeFile,
  type WorkPlace,
} from "./work.js";

/** What work writes through under `"exactly-once"`. After the end each method throws `TRANSACTION_CLOSED`. */
export interface SqliteTransaction {
  /** Runs one statement that changes rows. */
  run(sql: string, params?: readonly SqliteValue[]): Promise<SqliteChanges>;
  /** Reads the first row, or `undefined`. */
  get<Row = SqliteRow>(sql: string, params?: readonly SqliteValue[]): Promise<Row | undefined>;
  /** Reads all rows. */
  all<Row = SqliteRow>(sql: string, params?: readonly SqliteValue[]): Promise<readonly Row[]>;
  /** Runs any number of statements without parameters. */
  exec(sql: string): Promise<void>;
}

type Phase =
  | { readonly kind: "unused" }
  | { readonly kind: "opening"; readonly opening: Promise<void> }
  | { readonly kind: "open"; readonly leave: Leave; readonly timer: Timer }
  /** Rolled back although the work had not ended. */
  | { readonly kind: "aborted"; readonly error: OncekeyError }
  | { readonly kind: "closed" };

export function beginSession(
  place: WorkPlace,
  request: TransactionRequest,
): TransactionSession<SqliteTransaction> {
  const outstanding = createOutstanding();
  let phase: Phase = { kind: "unused" };
  let used = false;

  const open: OpenTransaction = {
    request,
    abort: (reason) => end({ kind: "aborted", error: closed(reason) }),
  };

  /** Frees the file; whatever has not been committed is rolled back. */
  function end(next: Phase): void {
    if (phase.kind !== "open") return;
    const { leave, timer } = phase;
    phase = next;
    timer.cancel();
    try {
      rollBack(place.connection);
    } finally {
      place.ended(open);
      leave();
    }
  }

  async function begin(): Promise<void> {
    try {
      const leave = await takeFile(place, () => phase.kind === "opening");
      const { maxTransactionMs } = request;
      const tooOld = `it was open for longer than ${maxTransactionMs} ms and was rolled back`;
      phase = {
        kind: "open",
        leave,
        timer: place.clock.setTimer(() => open.abort(tooOld), maxTransactionMs),
      };
      place.opened(open);
    } catch (cause) {
      const error = unavailable(cause);
      if (phase.kind === "opening") phase = { kind: "aborted", error };
      throw error;
    }
  }

  async function statement<T>(perform: () => T): Promise<T> {
    if (phase.kind === "unused") phase = { kind: "opening", opening: begin() };
    if (phase.kind === "opening") await phase.opening;
    if (phase.kind === "aborted") throw phase.error;
    if (phase.kind !== "open") throw closed("it has ended");
    used = true;
    try {
      return perform();
    } finally {
      // OR ROLLBACK, RAISE(ROLLBACK), a full disk: SQLite has ended the transaction, and the next statement
      // would be committed on its own.
      if (!place.connection.inTransaction()) end({ kind: "aborted", error: rolledBack() });
    }
  }

  async function commit(outcome: StoredOutcome, what: "everything" | "record"): Promise<CommitOutcome> {
    // A statement that the work did not await belongs to the transaction all the same.
    await outstanding.settled();
    const before = phase;
    if (before.kind !== "open") phase = { kind: "closed" };
    switch (before.kind) {
      case "unused":
        return completePlainly(place, request, outcome);
      case "open":
        try {
          return commitWork(place, request, outcome, what);
        } finally {
          end({ kind: "closed" });
        }
      case "aborted":
        return { kind: "refused", reason: messageOf(before.error) };
      default:
        throw closed("it has ended");
    }
  }

  return {
    handle: handleOf(place, (perform) => outstanding.add(statement(perform))),
    used: () => used,
    commit,
    async rollback() {
      if (phase.kind === "open") end({ kind: "closed" });
      else phase = { kind: "closed" };
    },
  };
}

/** The statements that have not ended. */
function createOutstanding() {
  const pending = new Set<Promise<unknown>>();
  return {
    add<T>(statement: Promise<T>): Promise<T> {
      const done = (): void => void pending.delete(statement);
      pending.add(statement);
      statement.then(done, done);
      return statement;
    },
    async settled(): Promise<void> {
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}

function handleOf(
  { connection }: WorkPlace,
  statement: <T>(perform: () => T) => Promise<T>,
): SqliteTransaction {
  /** One statement. What is wrong with it is found before the transaction begins. */
  async function one<T>(
    sql: string,
    params: readonly SqliteValue[] | undefined,
    perform: (prepared: SqliteStatement, values: readonly SqliteValue[]) => T,
  ): Promise<T> {
    checkedSql(sql, 1);
    const values = checkedParams(params);
    return statement(() => perform(connection.prepare(sql), values));
  }
  return {
    run: (sql, params) => one(sql, params, (prepared, values) => prepared.run(values)),
    get: <Row>(sql: string, params?: readonly SqliteValue[]) =>
      one(sql, params, (prepared, values) => prepared.get(values) as Row | undefined),
    all: <Row>(sql: string, params?: readonly SqliteValue[]) =>
      one(sql, params, (prepared, values) => prepared.all(values) as readonly Row[]),
    async exec(sql) {
      checkedSql(sql);
      await statement(() => connection.exec(sql));
    },
  };
}

function rolledBack(): OncekeyError<"TRANSACTION_ABORTED"> {
  const message = "SQLite rolled the transaction back. Nothing was kept; the work has to run again.";
  return new OncekeyError("TRANSACTION_ABORTED", message);
}
