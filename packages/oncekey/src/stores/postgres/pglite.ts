/**
 * @module
 * PGlite, a Postgres inside the process, for development and tests.
 *
 * It has one connection, which is the application's too; its own queue keeps statements of others out of a transaction, so
 * the two do not mix. Nothing can be given up there: whoever waits, waits for the statement before.
 */
import { configurationError } from "../../core/errors.js";
import type { InTransaction, PostgresConnection, PostgresDriver, PostgresRow } from "./driver.js";
import { checkedSql } from "./sql-text.js";

/** What is used of a `PGlite`. */
export interface PgliteDatabase {
  query(...parts: never[]): unknown;
  exec(...parts: never[]): unknown;
  sql(...parts: never[]): unknown;
  transaction(...parts: never[]): unknown;
  listen(...parts: never[]): unknown;
}

/** What exactly-once work writes through: `query`, `exec` and `` sql`…` `` of its transaction. */
export interface PgliteTransaction<Database extends PgliteDatabase = PgliteDatabase> {
  readonly query: Database["query"];
  readonly exec: Database["exec"];
  readonly sql: Database["sql"];
}

interface Client {
  query(
    text: string,
    params?: readonly unknown[],
    options?: object,
  ): Promise<{ readonly rows: PostgresRow[] }>;
  exec(text: string): Promise<unknown>;
}

interface Tx extends Client {
  sql(parts: TemplateStringsArray, ...params: readonly unknown[]): Promise<unknown>;
  rollback(): Promise<void>;
}

interface OpenDatabase extends Client {
  transaction(work: (tx: Tx) => Promise<unknown>): Promise<unknown>;
  listen(channel: string, heard: (payload: string) => void): Promise<() => Promise<unknown>>;
}

/** PGlite, as it was opened by the application: `fromPglite(await PGlite.create("./data"))`. */
export function fromPglite<Database extends PgliteDatabase>(
  database: Database,
): PostgresDriver<PgliteTransaction<Database>> {
  if (typeof database?.transaction !== "function" || typeof database.listen !== "function") {
    throw configurationError("fromPglite", ["it takes a PGlite that has been opened: new PGlite()"]);
  }
  const open = database as unknown as OpenDatabase;
  return {
    name: "pglite",
    hasSessions: false,
    open: () => ({
      take: async () => connectionOf(open),
      close: async () => undefined,
    }),
    async listen(_options, channel, handlers) {
      const stop = await open.listen(channel, handlers.heard);
      handlers.listening();
      return { close: async () => void (await stop()) };
    },
    handle: handleOf,
  };
}

const AS_ROWS = { rowMode: "array" } as const;

function connectionOf<Work>(database: OpenDatabase): PostgresConnection<Work> {
  let open: { readonly tx: Tx; end(how: "commit" | "rollback"): Promise<unknown> } | undefined;
  const client = (): Client => open?.tx ?? database;

  function begin(settings: readonly string[]): Promise<void> {
    return new Promise((begun, failed) => {
      let decide: (how: "commit" | "rollback") => void = () => undefined;
      const decided = new Promise<"commit" | "rollback">((resolve) => {
        decide = resolve;
      });
      const ended = database.transaction(async (tx) => {
        for (const setting of settings) await tx.exec(setting);
        const end = (how: "commit" | "rollback"): Promise<unknown> => {
          open = undefined;
          decide(how);
          return ended;
        };
        open = { tx, end };
        begun();
        if ((await decided) === "rollback") await tx.rollback();
      });
      ended.catch(failed);
    });
  }

  const rollback = async (): Promise<void> => void (await open?.end("rollback"));
  return {
    get client() {
      return client() as Work;
    },
    async query({ text }, params) {
      return (await client().query(text, [...params], AS_ROWS)).rows;
    },
    begin,
    session: {},
    async script(statements) {
      await client().exec(statements.join("; "));
      return "";
    },
    async commit() {
      await open?.end("commit");
      return "COMMIT";
    },
    rollback,
    isLost: () => false,
    free: () => undefined,
    destroy: () => void rollback().catch(() => undefined),
  };
}

function handleOf<Work>(inTransaction: InTransaction<Work>): Work {
  const run = async (text: string, perform: (tx: Tx) => Promise<unknown>): Promise<unknown> => {
    checkedSql(text);
    return inTransaction((client) => perform(client as Tx));
  };
  return {
    query: (text: string, ...others: readonly unknown[]) =>
      run(text, (tx) => tx.query(text, ...(others as [unknown[]]))),
    exec: (text: string) => run(text, (tx) => tx.exec(text)),
    sql: (parts: TemplateStringsArray, ...params: readonly unknown[]) =>
      run(parts.join(" ? "), (tx) => tx.sql(parts, ...params)),
  } as Work;
}
