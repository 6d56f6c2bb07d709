/**
 * @module
 * How the contract of stores opens SQLite, with whichever client.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { type SqliteDriver, type SqliteTransaction, sqliteStore } from "oncekey/stores/sqlite";
import { manualClock, type StoreContractSetup, type StoreSubject } from "oncekey/testing";

const OWN_CONNECTIONS =
  "The store works on connections of its own; it joins no transaction of the application's.";
export const SQLITE_WAIVERS: NonNullable<StoreContractSetup["waivers"]> = {
  joining: OWN_CONNECTIONS,
  pinning: OWN_CONNECTIONS,
};

/** Opens a store on a new file; rows and damage go through a connection that is not the store's. */
export function openSqliteSubject(driverOf: (path: string) => SqliteDriver): StoreSubject<SqliteTransaction> {
  const folder = mkdtempSync(join(tmpdir(), "oncekey-sqlite-"));
  const path = join(folder, "contract.db");
  const clock = manualClock();
  const outsider = new Database(path);
  outsider.exec("PRAGMA journal_mode = wal; CREATE TABLE payments (id TEXT NOT NULL)");
  const open = () => sqliteStore(driverOf(path), { clock, sweepIntervalMs: 0 });
  return {
    store: open(),
    another: open,
    sleep: clock.advance,
    damage: (key) => void outsider.prepare("UPDATE oncekey_records SET format = 99 WHERE key = ?").run([key]),
    rows: {
      write: (transaction, id) => transaction.run("INSERT INTO payments (id) VALUES (?)", [id]),
      count: async (id) => outsider.prepare("SELECT id FROM payments WHERE id = ?").all([id]).length,
    },
    dispose() {
      outsider.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
