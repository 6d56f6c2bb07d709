/**
 * @module
 * Statements in a transaction that the application holds, whichever client or query builder it belongs to.
 *
 * Invariants: each parameter stands in a statement once and in order; every answer is one text column, so that no setting of a
 * pool (dates, numbers, arrays, casts) changes what is read; nothing here begins or ends the transaction. Once the server
 * has ended it, no further statement is sent: it would be committed by itself.
 */
import { configurationError, isOncekeyError, OncekeyError } from "../../core/errors.js";
import { faultOf } from "./driver.js";
import type { SqlValue } from "./sql.js";
import { aborted } from "./work.js";

/**
 * What is needed of the application's own transaction: `query`, as a connection of `mysql2/promise` has it. Any query builder's
 * transaction becomes one in a line: `{ query: (sql, values) => trx.raw(sql, values) }`. It may answer with the rows, or with
 * a list whose first member they are.
 */
export interface MysqlCallerTransaction {
  query(sql: string, values: SqlValue[]): PromiseLike<unknown>;
}

export interface Caller {
  /** Runs a statement whose rows, if any, have one column. */
  ask(sql: string, values?: SqlValue[]): Promise<readonly string[]>;
  /** What was handed over; its statements are refused once the server has ended the transaction. */
  readonly handle: MysqlCallerTransaction;
}

/** @throws OncekeyError `CONFIGURATION_INVALID` if it has no `query`. */
export function callerOf(transaction: MysqlCallerTransaction): Caller {
  if (typeof (transaction as Partial<MysqlCallerTransaction> | null | undefined)?.query !== "function") {
    throw configurationError("The transaction", [
      "it must have query(sql, values), as a connection of mysql2/promise: hand over the connection itself, or wrap its raw query",
    ]);
  }
  const life: Life = { ended: undefined };
  return {
    handle: guarded(transaction, life),
    async ask(sql, values = []) {
      return answersOf(await watched(life, async () => transaction.query(sql, values)));
    },
  };
}

interface Life {
  ended: OncekeyError | undefined;
}

/** A row that somebody else has; nothing has changed, unless the server undoes a whole transaction for that. */
export class RowHeld extends Error {}

/** There is no such savepoint, so what it was a point of is gone. */
export class SavepointGone extends Error {}

async function watched<T>(life: Life, run: () => Promise<T>): Promise<T> {
  if (life.ended !== undefined) throw life.ended;
  try {
    return await run();
  } catch (error) {
    const meaning = meaningOf(error);
    if (isOncekeyError(meaning, "TRANSACTION_ABORTED")) life.ended = meaning;
    throw meaning;
  }
}

const DEADLOCK = 1213;
const CHANGED_SINCE_READ = 1020;
const NO_SUCH_SAVEPOINT = 1305;

function meaningOf(cause: unknown): unknown {
  const inner = serverError(cause);
  switch (inner?.errno) {
    case DEADLOCK:
      return aborted(cause);
    case CHANGED_SINCE_READ:
      return retryTransaction(cause);
    case NO_SUCH_SAVEPOINT:
      return new SavepointGone("The transaction has been ended", { cause });
    default:
      break;
  }
  switch (faultOf(inner)) {
    case "held":
      return new RowHeld("Another transaction has the record", { cause });
    case "lost":
      return aborted(cause);
    default:
      return cause;
  }
}

export function retryTransaction(cause?: unknown): OncekeyError<"RETRY_TRANSACTION"> {
  return new OncekeyError(
    "RETRY_TRANSACTION",
    "The transaction conflicts with one that it cannot see. Roll it back and repeat it from its start.",
    { retryAfterMs: 0, cause },
  );
}

export function outsideTransaction(): OncekeyError<"GUARANTEE_UNSUPPORTED"> {
  const message =
    "What was handed over is in no transaction, so nothing would hold together what is done. Begin one, and hand over its own connection.";
  return new OncekeyError("GUARANTEE_UNSUPPORTED", message);
}

const DEPTH = 5;

interface ServerError {
  readonly errno?: unknown;
  readonly code?: unknown;
}

/** Query builders put the client's error into one of their own, each under another name. */
function serverError(error: unknown): ServerError | undefined {
  let inner: unknown = error;
  for (let depth = 0; depth < DEPTH && typeof inner === "object" && inner !== null; depth += 1) {
    const one = inner as ServerError & Readonly<Record<string, unknown>>;
    if (typeof one.errno === "number" || one.fatal === true) return one;
    inner = one.cause ?? one.driverError ?? one.originalError ?? one.meta;
  }
  return undefined;
}

/** The texts of the one column, in whatever shape the client gives rows. */
function answersOf(result: unknown): readonly string[] {
  return rowsOf(result).map((row) => {
    const value = onlyValueOf(row);
    if (typeof value === "string") return value;
    if (value instanceof Uint8Array) return Buffer.from(value).toString("latin1");
    throw configurationError("The transaction", ["its query must give rows, as objects or as lists"]);
  });
}

/** Of a list, of an object under whatever name, or of one in another (by table, then by column). */
function onlyValueOf(row: unknown): unknown {
  const [value] = Object.values(row as object) as readonly unknown[];
  const isNested = typeof value === "object" && value !== null && !(value instanceof Uint8Array);
  return isNested ? onlyValueOf(value) : value;
}

/** Rows, or a list that begins with them, or an object that has them; none for a statement without rows. */
function rowsOf(result: unknown): readonly unknown[] {
  if (!Array.isArray(result)) {
    const { rows } = (result ?? {}) as { readonly rows?: unknown };
    return Array.isArray(rows) ? rows : [];
  }
  const [first] = result as readonly unknown[];
  if (!Array.isArray(first)) return isRow(first) ? result : [];
  // A list of lists: the rows and their fields, or rows that are lists themselves.
  return first.length === 0 || isRow(first[0]) ? first : result;
}

function isRow(value: unknown): boolean {
  return typeof value === "object" && value !== null && !("affectedRows" in value);
}

/** The methods through which a connection of mysql2 takes statements. */
const STATEMENTS: ReadonlySet<PropertyKey> = new Set(["query", "execute"]);

/** The same object, save that its statements stop with the transaction. */
function guarded(transaction: MysqlCallerTransaction, life: Life): MysqlCallerTransaction {
  return new Proxy(transaction, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (!STATEMENTS.has(name) || typeof member !== "function") return member;
      return async (...args: readonly unknown[]) => {
        try {
          return await watched(life, async () => Reflect.apply(member, target, args) as unknown);
        } catch (error) {
          // What is not about the end of the transaction is for the work, as its client says it.
          throw error instanceof RowHeld || error instanceof SavepointGone ? error.cause : error;
        }
      };
    },
  });
}
