/**
 * @module
 * The shop's own tables, on a connection of their own. The records of oncekey are in the same file, on its connections.
 */
import Database from "libsql";

export interface PaidOrder {
  readonly customer: string;
  readonly item: string;
  /** Cents. */
  readonly amount: number;
  /** The provider's name for the payment. */
  readonly payment: string;
}

export interface Orders {
  /** Adds an order unless its payment is there already. */
  add(order: PaidOrder): Promise<void>;
  of(customer: string): readonly PaidOrder[];
  pointsOf(customer: string): number;
  close(): void;
}

const SCHEMA = `
  create table if not exists orders (
    payment  text primary key,
    customer text not null,
    item     text not null,
    amount   integer not null
  );
  create table if not exists points (
    customer text primary key,
    points   integer not null
  );
`;

export const ADD_ORDER = "insert into orders (payment, customer, item, amount) values (?, ?, ?, ?)";
export const ADD_POINTS = `
  insert into points (customer, points) values (?, ?)
  on conflict (customer) do update set points = points + excluded.points`;

/** @param file the database; made if it is not there. */
export function openOrders(file: string): Orders {
  const database = new Database(file);
  database.exec("pragma busy_timeout = 0");
  database.exec("pragma journal_mode = wal");
  database.exec(SCHEMA);
  const add = database.prepare(`${ADD_ORDER} on conflict (payment) do nothing`);
  const ordersOf = database.prepare("select item, amount, payment, customer from orders where customer = ?");
  const pointsOf = database.prepare("select points from points where customer = ?");
  return {
    add: ({ payment, customer, item, amount }) =>
      whenFree(() => void add.run(payment, customer, item, amount)),
    of: (customer) => ordersOf.all(customer) as PaidOrder[],
    pointsOf: (customer) => (pointsOf.get(customer) as { readonly points: number } | undefined)?.points ?? 0,
    close: () => void database.close(),
  };
}

const LONGEST_WAIT_MS = 2_000;
const PAUSE_MS = 5;

/**
 * Writes as soon as no other connection does.
 *
 * SQLite could wait by itself (`busy_timeout`), but it would stop the event loop, and the transaction that it waits
 * for may be one of this process: it could never end.
 */
async function whenFree(write: () => void): Promise<void> {
  for (const endsAt = performance.now() + LONGEST_WAIT_MS; ; ) {
    try {
      write();
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() > endsAt) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY");
}
