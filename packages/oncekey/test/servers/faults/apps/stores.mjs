/**
 * @module test/servers/faults/apps/stores
 *
 * How each store is opened, in whichever process, and where the rows of exactly-once work are counted from outside.
 */
import Database from "libsql";
import { fromLibsql, sqliteStore } from "oncekey/stores/sqlite";

/**
 * @typedef {{ readonly label: string, readonly run: string }} Row
 *
 * @typedef {object} Opened
 * @property {import("oncekey").Store<any>} store
 * @property {(transaction: any, row: Row) => Promise<void>} [insert] writes a row through the transaction of the work
 * @property {() => Promise<void>} close
 *
 * @typedef {object} Outsider sees what is committed, through a connection that the store knows nothing of
 * @property {() => Promise<readonly Row[]>} rows
 * @property {() => Promise<void>} close
 *
 * @typedef {object} StoreKind
 * @property {(address: string) => Promise<Opened>} open
 * @property {(address: string) => Promise<Outsider>} outside makes the table of rows, if it is not there
 */

/** @type {StoreKind} */
const sqlite = {
  async open(address) {
    const store = sqliteStore(fromLibsql(() => new Database(address)));
    return {
      store,
      insert: (transaction, { label, run }) =>
        transaction.run("INSERT INTO effects (label, run) VALUES (?, ?)", [label, run]),
      close: store.close,
    };
  },
  async outside(address) {
    const database = new Database(address);
    database.exec(
      "PRAGMA journal_mode = wal; CREATE TABLE IF NOT EXISTS effects (label TEXT NOT NULL, run TEXT NOT NULL)",
    );
    return {
      rows: async () => /** @type {Row[]} */ (database.prepare("SELECT label, run FROM effects").all([])),
      close: async () => void database.close(),
    };
  },
};

export const storeKinds = { sqlite };

/** @typedef {keyof typeof storeKinds} StoreName */
