/**
 * @module
 * The process of the API: one SQLite file for the orders and for oncekey, and an orderly end.
 */
import Database from "libsql";
import { createIdempotency, type IdempotencyEvent } from "oncekey";
import { fromLibsql, sqliteStore } from "oncekey/stores/sqlite";
import { listen, numberFrom } from "../service.js";
import { createApp } from "./app.js";
import { openOrders } from "./database.js";
import { providerAt } from "./provider.js";

const file = process.env.DATABASE ?? "orders.sqlite";
const providerUrl = process.env.PROVIDER_URL ?? "http://127.0.0.1:3001";
const leaseMs = numberFrom("LEASE_MS", 30_000);

const orders = openOrders(file);
const store = sqliteStore(fromLibsql(() => new Database(file)));
const idempotency = createIdempotency({ store, leaseMs, onEvent: log });

const app = createApp({ idempotency, orders, provider: providerAt(providerUrl) });
const server = await listen(app, numberFrom("PORT", 3000));

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void close());

/** Work that is running finishes, and what it did is on record, before the process ends. */
async function close(): Promise<void> {
  server.close();
  await idempotency.close();
  await store.close();
  orders.close();
  process.exit();
}

function log(event: IdempotencyEvent): void {
  if (event.type === "finished")
    console.log(`${event.operation}: ${event.outcome} after ${Math.round(event.tookMs)} ms`);
  else if (event.type === "takeover") console.log(`${event.operation}: takes over, attempt ${event.attempt}`);
  else if (event.type === "reconciled") console.log(`${event.operation}: the provider says ${event.verdict}`);
  else if (event.type === "warning") console.log(event.text);
}
