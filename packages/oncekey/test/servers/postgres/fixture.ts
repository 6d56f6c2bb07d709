/**
 * @module
 * Stores on Postgres for tests that look at one thing: tables of their own, and everything closed afterwards.
 */
import {
  fromPg,
  fromPostgresJs,
  type PostgresDriver,
  type PostgresStore,
  type PostgresStoreOptions,
  postgresStore,
} from "oncekey/stores/postgres";
import { Pool } from "pg";
import postgres from "postgres";
import { onTestFinished } from "vitest";
import { freshPrefix } from "./subject.js";

export interface OpenedStore<Tx> {
  readonly store: PostgresStore<Tx>;
  /** Another one on the same tables. */
  another(options?: PostgresStoreOptions): PostgresStore<Tx>;
  readonly tablePrefix: string;
  readonly records: string;
}

/** A pool of the application's that is closed after the test. */
export function openPool(url: string, max = 5): Pool {
  const pool = new Pool({ connectionString: url, max });
  pool.on("error", () => undefined);
  onTestFinished(() => pool.end());
  return pool;
}

/** Opens a store on tables of its own. */
export async function openStore<Tx>(
  driver: PostgresDriver<Tx>,
  options: PostgresStoreOptions = {},
): Promise<OpenedStore<Tx>> {
  const tablePrefix = options.tablePrefix ?? freshPrefix();
  const another = (others: PostgresStoreOptions = {}): PostgresStore<Tx> => {
    const store = postgresStore(driver, { sweepIntervalMs: 0, ...options, ...others, tablePrefix });
    onTestFinished(() => store.close());
    return store;
  };
  const store = another();
  await store.migrate();
  return { store, another, tablePrefix, records: `${options.schema ?? "public"}.${tablePrefix}records` };
}

/** Each client that has sessions, by its name. */
export const drivers: Readonly<Record<"pg" | "postgres.js", (url: string) => PostgresDriver>> = {
  pg: (url) => fromPg(openPool(url)) as unknown as PostgresDriver,
  "postgres.js": (url) =>
    fromPostgresJs((settings) => postgres(url, { ...settings })) as unknown as PostgresDriver,
};

/** A driver that tells of each statement before it is sent. */
export function watched<Tx>(
  driver: PostgresDriver<Tx>,
  told: (name: string | undefined) => void,
): PostgresDriver<Tx> {
  return {
    ...driver,
    open(options) {
      const pool = driver.open(options);
      return {
        ...pool,
        async take() {
          const connection = await pool.take();
          return {
            ...connection,
            query(statement, params) {
              told(statement.name);
              return connection.query(statement, params);
            },
          };
        },
      };
    },
  };
}
