/**
 * @module
 * The stores that this package's own adapters are put under contract with.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { memoryStore } from "oncekey/stores/memory";
import { fromLibsql, type SqliteTransaction, sqliteStore } from "oncekey/stores/sqlite";
import type { HttpContractSetup, TransactionalStore } from "oncekey/testing";

/** Memory for most cases, a SQLite file of its own for each case of exactly-once. */
export const contractStores = {
  openStore: () => memoryStore(),
  openTransactionalStore,
} satisfies Pick<HttpContractSetup, "openStore" | "openTransactionalStore">;

function openTransactionalStore(): TransactionalStore<unknown> {
  const folder = mkdtempSync(join(tmpdir(), "oncekey-contract-"));
  const path = join(folder, "orders.db");
  const outside = new Database(path);
  outside.exec("create table orders (name text not null)");
  const store = sqliteStore(fromLibsql(() => new Database(path)));
  return {
    store: {
      ...store,
      async close() {
        await store.close();
        outside.close();
        rmSync(folder, { recursive: true, force: true });
      },
    },
    async insert(transaction, row) {
      await (transaction as SqliteTransaction).run("insert into orders (name) values (?)", [row]);
    },
    async rows() {
      const rows = outside.prepare("select name from orders order by name").all() as {
        readonly name: string;
      }[];
      return rows.map(({ name }) => name);
    },
  };
}
