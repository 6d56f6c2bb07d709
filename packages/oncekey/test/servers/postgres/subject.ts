/**
 * @module
 * How the contract of stores opens Postgres, with whichever client: tables of their own for each case, all in one database.
 */
import { type PostgresDriver, type PostgresStoreOptions, postgresStore } from "oncekey/stores/postgres";
import type { StoreSubject } from "oncekey/testing";

/** Statements beside the store: rows of the work, and what damages a record. */
export interface Outsider {
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
}

export async function openPostgresSubject<Tx>(subject: SubjectOptions<Tx>): Promise<StoreSubject<Tx>> {
  const { driver, outsider, write, options } = subject;
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
    async dispose() {
      await outsider.query(`DROP TABLE ${payments}, ${tablePrefix}records, ${tablePrefix}migrations`);
    },
  };
}
