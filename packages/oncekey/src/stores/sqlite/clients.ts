/**
 * @module
 * One `from…` for each client of SQLite, each proven by the store contract.
 *
 * A factory is asked for, not a connection: the store needs connections of its own, one for its records and
 * one for exactly-once work. On the application's connection a claim made while the application is inside a
 * transaction would vanish with its rollback. The clients are known by their shape only, never imported.
 */
import { configurationError, OncekeyError } from "../../core/errors.js";
import type { SqliteConnection, SqliteDriver, SqliteRow, SqliteStatement, SqliteValue } from "./driver.js";

/** What is used of a `Database` of better-sqlite3, and of libsql, which has the same interface. */
export interface BetterSqlite3Database {
  readonly inTransaction: boolean;
  prepare(sql: string): BetterSqlite3Statement;
  exec(sql: string): unknown;
  close(): unknown;
}

export interface BetterSqlite3Statement {
  /** Whether it gives rows. */
  readonly reader?: boolean;
  run(...params: unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint };
  get(...params: unknown[]): unknown;
  all(...params: unknown[]): unknown[];
}

/** What is used of a `DatabaseSync` of `node:sqlite`. */
export interface NodeSqliteDatabase {
  prepare(sql: string): NodeSqliteStatement;
  exec(sql: string): void;
  close(): void;
  /** Missing before Node 22.16. */
  readonly isTransaction?: boolean;
}

export interface NodeSqliteStatement {
  run(...params: SqliteValue[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  };
  get(...params: SqliteValue[]): unknown;
  all(...params: SqliteValue[]): unknown[];
}

/**
 * The client `libsql` (its synchronous interface; not `@libsql/client`).
 *
 * @param open opens a new connection to the file at each call: `() => new Database("orders.db")`.
 */
export function fromLibsql(open: () => BetterSqlite3Database): SqliteDriver {
  return driver("libsql", "inTransaction", open, (database) => ofBetterSqlite3(database, libsqlRow));
}

/**
 * The client `better-sqlite3`.
 *
 * @param open opens a new connection to the file at each call: `() => new Database("orders.db")`.
 */
export function fromBetterSqlite3(open: () => BetterSqlite3Database): SqliteDriver {
  return driver("better-sqlite3", "inTransaction", open, (database) => ofBetterSqlite3(database, plainRow));
}

/**
 * The client built into Node, without a flag from version 22.13 on; on Node 20 there is none, use libsql or better-sqlite3.
 *
 * @param open opens a new connection to the file at each call: `() => new DatabaseSync("orders.db")`.
 */
export function fromNodeSqlite(open: () => NodeSqliteDatabase): SqliteDriver {
  return driver("node:sqlite", undefined, open, ofNodeSqlite);
}

function driver<Client extends object>(
  name: string,
  flag: string | undefined,
  open: () => Client,
  connect: (client: Client) => SqliteConnection,
): SqliteDriver {
  if (typeof open !== "function") {
    throw configurationError(`The driver ${name}`, [
      `it takes a function that opens a new connection, such as () => new Database("orders.db"), not ${kindOf(open)}`,
    ]);
  }
  return {
    name,
    open() {
      const client = opened(name, open);
      const missing = ["prepare", "exec", "close", flag].filter(
        (member) => member !== undefined && !(member in client),
      );
      if (missing.length === 0) return connect(client);
      throw configurationError(`The driver ${name}`, [
        `what the function returned is no connection of ${name}: it has no ${missing.join(", no ")}`,
      ]);
    },
  };
}

function opened<Client extends object>(name: string, open: () => Client): Client {
  let client: unknown;
  try {
    client = open();
  } catch (cause) {
    throw notOpened(name, cause);
  }
  if (typeof client === "object" && client !== null && !("then" in client)) return client as Client;
  const problem = `the function has to return an open connection at once, not ${kindOf(client)}`;
  throw configurationError(`The driver ${name}`, [problem]);
}

function notOpened(name: string, cause: unknown): OncekeyError<"CONFIGURATION_INVALID"> {
  const why = cause instanceof Error ? cause.message : String(cause);
  const message = `The driver ${name} could not open the database: ${why}`;
  return new OncekeyError("CONFIGURATION_INVALID", message, { problems: [why], cause });
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (typeof value !== "object") return typeof value;
  return "then" in value ? "a promise" : "an object";
}

/** A row that nobody takes keeps a statement of libsql open, and with it the transaction that it stands in. */
function withoutRows(statement: BetterSqlite3Statement): BetterSqlite3Statement {
  if (statement.reader !== true) return statement;
  throw configurationError("The statement", ["it gives rows (RETURNING, SELECT): use all or get, not run"]);
}

function ofBetterSqlite3(
  database: BetterSqlite3Database,
  toRow: (row: Record<string, unknown>) => SqliteRow,
): SqliteConnection {
  let isOpen = true;
  return {
    client: database,
    prepare(sql) {
      let spare: BetterSqlite3Statement | undefined = database.prepare(sql);
      const prepare = (): BetterSqlite3Statement => {
        const statement = spare ?? database.prepare(sql);
        spare = undefined;
        return statement;
      };
      const [forRun, forGet, forAll] = [
        untilItThrows(prepare),
        untilItThrows(prepare),
        untilItThrows(prepare),
      ];
      // One list, not several arguments: a single object (bytes, say) would be taken for named parameters.
      return {
        run: (params) => forRun((statement) => withoutRows(statement).run(params)),
        get: (params) =>
          asRow(
            forGet((statement) => statement.get(params)),
            toRow,
          ),
        all: (params) => forAll((statement) => statement.all(params)).map((row) => toRow(asObject(row))),
      };
    },
    exec: (sql) => void database.exec(sql),
    // Asked this after it was closed, libsql ends the process.
    inTransaction: () => isOpen && database.inTransaction,
    close() {
      isOpen = false;
      database.close();
    },
  };
}

/**
 * Keeps a prepared statement for one method, and prepares it anew after it has thrown.
 *
 * A statement of libsql 0.5 that has thrown from `get`, or whose `get` follows its `all`, is not reset: it keeps
 * the parameters of before and answers for them from then on. Another key's record would be taken for one's own.
 */
function untilItThrows(prepare: () => BetterSqlite3Statement) {
  let kept: BetterSqlite3Statement | undefined;
  return <T>(use: (statement: BetterSqlite3Statement) => T): T => {
    const statement = kept ?? prepare();
    kept = undefined;
    const result = use(statement);
    kept = statement;
    return result;
  };
}

function asObject(row: unknown): Record<string, unknown> {
  return row as Record<string, unknown>;
}

function asRow(row: unknown, toRow: (row: Record<string, unknown>) => SqliteRow): SqliteRow | undefined {
  return typeof row === "object" && row !== null ? toRow(asObject(row)) : undefined;
}

/** Bytes as a plain `Uint8Array`: some clients give a `Buffer` or an `ArrayBuffer`. */
function plainRow(row: Record<string, unknown>): SqliteRow {
  for (const name in row) {
    const value = row[name];
    if (value instanceof ArrayBuffer) row[name] = new Uint8Array(value);
    else if (value instanceof Uint8Array) {
      row[name] = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    }
  }
  return row;
}

/** libsql adds its measurements to a single row. */
function libsqlRow(row: Record<string, unknown>): SqliteRow {
  delete row._metadata;
  return plainRow(row);
}

function ofNodeSqlite(database: NodeSqliteDatabase): SqliteConnection {
  let isOpen = true;
  return {
    client: database,
    prepare(sql): SqliteStatement {
      const statement = database.prepare(sql);
      return {
        run(params) {
          const { changes, lastInsertRowid } = statement.run(...params);
          return { changes: Number(changes), lastInsertRowid };
        },
        get: (params) => asRow(statement.get(...params), plainRow),
        all: (params) => statement.all(...params).map((row) => plainRow(asObject(row))),
      };
    },
    exec: (sql) => database.exec(sql),
    inTransaction: () => isOpen && (database.isTransaction ?? probeTransaction(database)),
    close() {
      isOpen = false;
      database.close();
    },
  };
}

/** A transaction cannot begin inside another one, which is how an older `node:sqlite` shows that there is one. */
function probeTransaction(database: NodeSqliteDatabase): boolean {
  try {
    database.exec("BEGIN");
  } catch {
    return true;
  }
  database.exec("ROLLBACK");
  return false;
}
