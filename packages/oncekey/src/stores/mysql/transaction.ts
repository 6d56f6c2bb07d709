/**
 * @module
 * Exactly-once work: its rows and its completion in one transaction of the database.
 *
 * It begins with the work's first statement, on a connection of the store's own that nobody else uses until it ends. The
 * completion is its last statement; if the token no longer holds the key, everything is rolled back.
 *
 * Invariants: never longer than `maxTransactionMs`; ends exactly once. When MySQL has undone the whole transaction (a
 * deadlock does that), no further statement runs: it would be the first of another one.
 */
import type { Timer } from "../../core/clock.js";
import type { OncekeyError } from "../../core/errors.js";
import type { StoredOutcome } from "../../core/record.js";
import type { CommitOutcome, TransactionRequest, TransactionSession } from "../../core/store.js";
import type { Session } from "./connections.js";
import { faultOf, unavailable } from "./driver.js";
import { checkedSql } from "./sql-text.js";
import {
  aborted,
  closed,
  commitWork,
  completePlainly,
  drop,
  leave,
  messageOf,
  type OpenTransaction,
  setSavepoint,
  showsTransaction,
  survives,
  takeConnection,
  type WorkPlace,
} from "./work.js";

/** A row by the names of its columns, or in whatever form the pool's settings give rows. */
export type MysqlRow = Readonly<Record<string, unknown>>;

/** What a statement that changes rows answers. */
export interface MysqlChanges {
  readonly affectedRows: number;
  readonly insertId: number;
}

/** A statement as mysql2 takes it in place of a text. */
export interface MysqlStatement {
  readonly sql: string;
  readonly values?: unknown;
}

/**
 * What work writes through under `"exactly-once"`: the two methods of a connection of `mysql2/promise`, with the settings of
 * the pool that the store was made with. After the end each throws `TRANSACTION_CLOSED`; once MySQL has rolled the
 * transaction back, `TRANSACTION_ABORTED`.
 */
export interface MysqlTransaction {
  /** Runs a statement whose values the client writes into its text. */
  query<Result = readonly MysqlRow[]>(
    sql: string | MysqlStatement,
    values?: unknown,
  ): Promise<[result: Result, fields: unknown]>;
  /** Runs a prepared statement. */
  execute<Result = readonly MysqlRow[]>(
    sql: string | MysqlStatement,
    values?: unknown,
  ): Promise<[result: Result, fields: unknown]>;
}

interface Opened {
  readonly session: Session;
  readonly timer: Timer;
  /** Rejects when the transaction is ended while a statement runs, whose own answer may never come. */
  readonly interrupted: Promise<never>;
  readonly interrupt: (error: OncekeyError) => void;
}

type Phase =
  | { readonly kind: "unused" }
  | { readonly kind: "opening"; readonly opening: Promise<void> }
  | ({ readonly kind: "open" } & Opened)
  /** Rolled back although the work had not ended. */
  | { readonly kind: "aborted"; readonly error: OncekeyError }
  | { readonly kind: "closed" };

/** One transaction, from before its first statement to after its end. */
interface Life {
  readonly place: WorkPlace;
  readonly request: TransactionRequest;
  readonly outstanding: Outstanding;
  readonly asOpen: OpenTransaction;
  phase: Phase;
  used: boolean;
  /** Why the server has undone it, if it has. */
  undone: string | undefined;
  /** The server has said that a transaction is open. */
  begun: boolean;
  hasSavepoint: boolean;
}

export function beginSession(
  place: WorkPlace,
  request: TransactionRequest,
): TransactionSession<MysqlTransaction> {
  const outstanding = createOutstanding();
  const life: Life = {
    place,
    request,
    outstanding,
    asOpen: { request, abort: (reason) => abort(life, closed(reason)) },
    phase: { kind: "unused" },
    used: false,
    undone: undefined,
    begun: false,
    hasSavepoint: false,
  };
  return {
    handle: handleOf((isPlain, perform) => outstanding.add(statement(life, isPlain, perform))),
    used: () => life.used,
    undoneBy: () => life.undone,
    commit: (outcome, what) => commit(life, outcome, what),
    async rollback() {
      const before = life.phase;
      life.phase = { kind: "closed" };
      if (before.kind === "open") await end(life, before, false);
    },
  };
}

/** Frees the connection; whatever has not been committed is rolled back. */
async function end({ place, asOpen }: Life, { session, timer }: Opened, committed: boolean): Promise<void> {
  timer.cancel();
  await leave(place, session, committed);
  place.ended(asOpen);
}

/** Not by the work, and not at a moment of its choosing: a statement may be under way. */
function abort(life: Life, error: OncekeyError): void {
  const { phase: opened, outstanding, place } = life;
  if (opened.kind !== "open") return;
  life.phase = { kind: "aborted", error };
  if (outstanding.size() > 0) drop(place, opened.session);
  opened.interrupt(error);
  void end(life, opened, false);
}

async function begin(life: Life): Promise<void> {
  const { place, asOpen } = life;
  const { maxTransactionMs } = life.request;
  try {
    const session = await takeConnection(place, maxTransactionMs);
    if (life.phase.kind !== "opening") {
      await leave(place, session, false);
      throw closed("it has ended");
    }
    const tooOld = `it was open for longer than ${maxTransactionMs} ms and was rolled back`;
    const timer = place.clock.setTimer(() => asOpen.abort(tooOld), maxTransactionMs);
    life.phase = { kind: "open", session, timer, ...interruption() };
    place.opened(asOpen);
  } catch (cause) {
    const error = unavailable(cause);
    if (life.phase.kind === "opening") life.phase = { kind: "aborted", error };
    throw error;
  }
}

type Answer = readonly [result: unknown, fields: unknown];
type Perform = (session: Session) => Promise<Answer>;

async function statement(life: Life, isPlain: boolean, perform: Perform): Promise<Answer> {
  if (life.phase.kind === "unused") life.phase = { kind: "opening", opening: begin(life) };
  if (life.phase.kind === "opening") await life.phase.opening;
  const opened = life.phase as Phase;
  if (opened.kind === "aborted") throw opened.error;
  if (opened.kind !== "open") throw closed("it has ended");
  life.used = true;
  try {
    if (!isPlain && !life.hasSavepoint) {
      life.hasSavepoint = true;
      await setSavepoint(life.place, opened.session);
    }
    const answer = await Promise.race([perform(opened.session), opened.interrupted]);
    life.begun ||= showsTransaction(answer[0]) === true;
    return answer;
  } catch (error) {
    if (life.phase !== opened) throw error;
    const lives = await survives(life.place, opened.session, life.begun, error);
    // Meanwhile its time may have run out, and then it has been left already.
    if (lives || life.phase !== opened) throw error;
    opened.session.broken ||= faultOf(error) === "lost";
    life.undone = messageOf(error);
    const abortion = aborted(error);
    life.phase = { kind: "aborted", error: abortion };
    await end(life, opened, false);
    throw abortion;
  }
}

type What = "everything" | "record";

async function commit(life: Life, outcome: StoredOutcome, what: What): Promise<CommitOutcome> {
  // A statement that the work did not await belongs to the transaction all the same.
  await life.outstanding.settled();
  const before = life.phase;
  life.phase = { kind: "closed" };
  switch (before.kind) {
    case "unused":
      return completePlainly(life.place, life.request, outcome);
    case "open":
      return commitOpened(life, before, outcome, what);
    case "aborted":
      return { kind: "refused", reason: messageOf(before.error) };
    default:
      throw closed("it has ended");
  }
}

async function commitOpened(
  life: Life,
  opened: Opened,
  outcome: StoredOutcome,
  what: What,
): Promise<CommitOutcome> {
  const { place, request, hasSavepoint } = life;
  opened.timer.cancel();
  if (what === "record") {
    // Without rows there is nothing that the completion has to be committed with.
    await end(life, opened, false);
    return completePlainly(place, request, outcome);
  }
  let committed = false;
  try {
    const answer = await commitWork(place, opened.session, request, outcome, hasSavepoint);
    committed = answer.kind === "committed";
    return answer;
  } finally {
    await end(life, opened, committed);
  }
}

function interruption(): Pick<Opened, "interrupted" | "interrupt"> {
  let interrupt: Opened["interrupt"] = () => undefined;
  const interrupted = new Promise<never>((_, reject) => {
    interrupt = reject;
  });
  // Nobody may be listening when it happens.
  interrupted.catch(() => undefined);
  return { interrupted, interrupt };
}

/** The statements that have not ended. */
interface Outstanding {
  size(): number;
  add<T>(statement: Promise<T>): Promise<T>;
  settled(): Promise<void>;
}

function createOutstanding(): Outstanding {
  const pending = new Set<Promise<unknown>>();
  return {
    size: () => pending.size,
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

function handleOf(statement: (isPlain: boolean, perform: Perform) => Promise<Answer>): MysqlTransaction {
  async function run<Result>(
    method: "query" | "execute",
    sql: string | MysqlStatement,
    values: unknown,
  ): Promise<[result: Result, fields: unknown]> {
    const isPlain = checkedSql(typeof sql === "string" ? sql : sql.sql);
    const [result, fields] = await statement(
      isPlain,
      ({ connection }) =>
        new Promise((resolve, reject) => {
          connection[method](sql, values, (error, ...answer) => {
            if (error) reject(error);
            else resolve(answer);
          });
        }),
    );
    return [result as Result, fields];
  }
  return {
    query: (sql, values) => run("query", sql, values),
    execute: (sql, values) => run("execute", sql, values),
  };
}
