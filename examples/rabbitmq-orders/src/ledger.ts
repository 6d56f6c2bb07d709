/**
 * @module
 * The charges, as rows. The table takes whatever it is given, so that it shows what really happened.
 */
import Database from "libsql";
import type { Order } from "./orders.js";

/** What a connection and a transaction of the store have in common. */
export const INSERT = "INSERT INTO charges (order_id, amount, consumer) VALUES (?, ?, ?)";

export function openLedger(path: string) {
  const database = new Database(path);
  database.exec(`PRAGMA journal_mode = wal; PRAGMA busy_timeout = 5000;
    CREATE TABLE IF NOT EXISTS charges (order_id TEXT NOT NULL, amount INTEGER NOT NULL, consumer TEXT NOT NULL)`);
  return {
    charge: ({ id, amount }: Order, consumer: string) =>
      void database.prepare(INSERT).run([id, amount, consumer]),
    /** Charges by order. */
    counts(): ReadonlyMap<string, number> {
      const rows = database
        .prepare("SELECT order_id, count(*) AS charges FROM charges GROUP BY order_id")
        .all([]);
      return new Map(
        (rows as { order_id: string; charges: number }[]).map((row) => [row.order_id, row.charges]),
      );
    },
    close: () => database.close(),
  };
}

export type Ledger = ReturnType<typeof openLedger>;
