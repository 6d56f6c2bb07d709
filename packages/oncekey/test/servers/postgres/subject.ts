/**
 * @module
 * How the contract of stores opens Postgres, with whichever client: tables of their own for each case, all in one database.
 */
import {
  type CallerTransaction,
  type PostgresDriver,
  type PostgresStoreOptions,
  postgresStore,
} from "oncekey/stores/postgres";
import type { StoreSubject } from "oncekey/testing";
import type { Pool } from "pg";

/** Statements beside the store: rows of the work, and what damages a record. */
interface Outsider {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

let opened = 0;

/** Names that no other case of this file has. */
export function freshPrefix(): string {
  opened += 1;
  return `case_${opened}_`;
}

export const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

export interface SubjectOptions<Tx> {
  readonly driver: PostgresDriver<Tx>;
  readonly outsider: Outsider;
  readonly write: (transaction: Tx, table: string, id: string) => Promise<unknown>;
  readonly options?: PostgresStoreOptions;
  /** A connection of the application's that is in no transaction. */
  readonly connect?: () => Promise<Connected>;
}

export interface Connected {
  readonly transaction: CallerTransaction;
  /** One statement without parameters. */
  run(text: string): Promise<unknown>;
  free(): void;
}

export const connectPg = (pool: Pool) => async (): Promise<Connected> => {
  const client = await pool.connect();
  return { transaction: client, run: (text) => client.query(text), free: () => client.release() };
};

async function beginCaller(connect: () => Promise<Connected>, table: string) {
  const { transaction, run, free } = await connect();
  await run("BEGIN");
  let open = true;
  const end = async (how: "COMMIT" | "ROLLBACK"): Promise<void> => {
    if (!open) return;
    open = false;
    await run(how);
    free();
  };
  return {
    transaction,
    write: (id: string) => run(`INSERT INTO ${table} (id) VALUES ('${id}')`),
    commit: () => end("COMMIT"),
    rollback: () => end("ROLLBACK"),
  };
}

export async function openPostgresSubject<Tx>(
  subject: SubjectOptions<Tx>,
): Promise<StoreSubject<Tx, CallerTransaction>> {
  const { driver, outsider, write, options, connect } = subject;
  const tablePrefix = freshPrefix();
  const open = () => postgresStore(driver, { tablePrefix, sweepIntervalMs: 0, ...options });
  const store = open();
  await store.migrate();
  const payments = `${tablePrefix}payments`;
  await outsider.query(`CREATE TABLE ${payments} (id text NOT NULL)`);
  return {
    store,
    another: open,
    sleep,
    damage: async (key) => {
      await outsider.query(`UPDATE ${tablePrefix}records SET format = 99 WHERE key = $1`, [key]);
    },
    rows: {
      write: (transaction, id) => write(transaction, payments, id),
      count: async (id) =>
        (await outsider.query(`SELECT id FROM ${payments} WHERE id = $1`, [id])).rows.length,
    },
    ...(connect !== undefined && { beginCaller: () => beginCaller(connect, payments) }),
    async dispose() {
      await outsider.query(`DROP TABLE ${payments}, ${tablePrefix}records, ${tablePrefix}migrations`);
    },
  };
}
