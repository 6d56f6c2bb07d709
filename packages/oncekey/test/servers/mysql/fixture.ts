/**
 * @module
 * Stores on MySQL for tests that look at one thing: tables of their own, and everything closed afterwards.
 */
import mysql, { type Pool, type RowDataPacket } from "mysql2/promise";
import { fromMysql2, type MysqlStore, type MysqlStoreOptions, mysqlStore } from "oncekey/stores/mysql";
import { onTestFinished } from "vitest";
import type { ClaimRequest, CompleteRequest, TransactionRequest } from "../../../src/core/store.js";
import { bytesOf, claimRequest, identityOf } from "../../../src/testing/requests.js";

let made = 0;

/** A beginning for the names of tables that no other test uses. */
export function freshPrefix(): string {
  made += 1;
  return `t${made}_`;
}

/** A pool of the application's that is closed after the test. */
export function openPool(url: string, options: mysql.PoolOptions = {}): Pool {
  const pool = mysql.createPool({ uri: url, connectionLimit: 8, ...options });
  onTestFinished(() => pool.end());
  return pool;
}

export interface OpenedStore {
  readonly store: MysqlStore;
  /** Another one on the same tables, at another address of the same server if need be. */
  another(options?: MysqlStoreOptions, url?: string): MysqlStore;
  readonly records: string;
}

/** Opens a store on tables of its own. */
export async function openStore(url: string, options: MysqlStoreOptions = {}): Promise<OpenedStore> {
  const tablePrefix = options.tablePrefix ?? freshPrefix();
  const another = (others: MysqlStoreOptions = {}, at = url): MysqlStore => {
    const driver = fromMysql2(mysql.createPool, at);
    const store = mysqlStore(driver, { sweepIntervalMs: 0, ...options, ...others, tablePrefix });
    onTestFinished(() => store.close());
    return store;
  };
  const store = another();
  await store.migrate();
  return { store, another, records: `${tablePrefix}records` };
}

/** Makes a table for rows of the work, and counts them. */
export async function openRows(pool: Pool) {
  const table = `${freshPrefix()}payments`;
  await pool.query(`CREATE TABLE ${table} (id VARCHAR(100) NOT NULL PRIMARY KEY, n INT) ENGINE=InnoDB`);
  return {
    table,
    insert: `INSERT INTO ${table} (id, n) VALUES (?, 0)`,
    async count(id: string): Promise<number> {
      const [rows] = await pool.query<RowDataPacket[]>(`SELECT id FROM ${table} WHERE id = ?`, [id]);
      return rows.length;
    },
  };
}

export function resultOf(text: string) {
  return { head: `head of ${text}`, body: bytesOf(text) };
}

export function completionOf(request: ClaimRequest, text = "done", attempt = 1): CompleteRequest {
  return { ...identityOf(request), attempt, outcome: resultOf(text) };
}

export function transactionOf(request: ClaimRequest, maxTransactionMs = 5_000): TransactionRequest {
  return { ...identityOf(request), attempt: 1, maxTransactionMs };
}

/** Claims a new key for exactly-once work and begins its transaction. */
export async function beginWork(store: MysqlStore, maxTransactionMs?: number) {
  const request = claimRequest({ guarantee: "exactly-once" });
  await store.claim(request);
  const session = store.begin?.(transactionOf(request, maxTransactionMs));
  if (session === undefined) throw new Error("The store has no transactions");
  return { request, session };
}
