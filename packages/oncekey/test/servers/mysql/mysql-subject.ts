/**
 * @module
 * How the contract of stores opens MySQL, with whichever kind of pool.
 */
import { setTimeout as sleep } from "node:timers/promises";
import mysql, { type Pool, type RowDataPacket } from "mysql2/promise";
import {
  type MysqlCallerTransaction,
  type MysqlDriver,
  type MysqlStore,
  type MysqlTransaction,
  mysqlStore,
} from "oncekey/stores/mysql";
import type { StoreSubject } from "oncekey/testing";

let made = 0;

/** Opens a store on tables of its own; rows and damage go through a connection that is not the store's. */
export async function openMysqlSubject(
  outsider: Pool,
  driverOf: () => MysqlDriver,
): Promise<StoreSubject<MysqlTransaction, MysqlCallerTransaction>> {
  made += 1;
  const tablePrefix = `contract_${made}_`;
  const open = (): MysqlStore => mysqlStore(driverOf(), { tablePrefix, sweepIntervalMs: 0 });
  const store = open();
  await store.migrate();
  const payments = `${tablePrefix}payments`;
  await outsider.query(`CREATE TABLE ${payments} (id VARCHAR(100) NOT NULL, KEY (id)) ENGINE=InnoDB`);
  return {
    store,
    another: open,
    sleep: (ms) => sleep(ms),
    async damage(key) {
      await outsider.query(`UPDATE ${tablePrefix}records SET format = 99 WHERE \`key\` = ?`, [key]);
    },
    rows: {
      write: (transaction, id) => transaction.query(`INSERT INTO ${payments} (id) VALUES (?)`, [id]),
      async count(id) {
        const [rows] = await outsider.query<RowDataPacket[]>(`SELECT id FROM ${payments} WHERE id = ?`, [id]);
        return rows.length;
      },
    },
    beginCaller: () => beginCaller(outsider, payments),
    async dispose() {
      await outsider.query(`DROP TABLE ${payments}, ${tablePrefix}records, ${tablePrefix}migrations`);
    },
  };
}

type BeginCaller = NonNullable<StoreSubject<MysqlTransaction, MysqlCallerTransaction>["beginCaller"]>;

/** A transaction as an application holds it: READ COMMITTED, so that it sees what others commit meanwhile. */
async function beginCaller(outsider: Pool, payments: string): ReturnType<BeginCaller> {
  const connection = await outsider.getConnection();
  await connection.query("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
  await connection.beginTransaction();
  let ended = false;
  const end = async (how: "commit" | "rollback"): Promise<void> => {
    if (ended) return;
    ended = true;
    await connection[how]();
    connection.release();
  };
  return {
    transaction: connection,
    write: (id: string) => connection.query(`INSERT INTO ${payments} (id) VALUES (?)`, [id]),
    commit: () => end("commit"),
    rollback: () => end("rollback"),
  };
}

export function outsiderOf(url: string): Pool {
  return mysql.createPool({ uri: url, connectionLimit: 8 });
}
