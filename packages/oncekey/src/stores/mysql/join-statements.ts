/**
 * @module
 * The statements of a transaction that the application holds: parameters instead of values, and one text column as answer.
 *
 * Invariant: the tables are named with their database, for the application's connection may look elsewhere by default.
 */
import type { RecordKey, StoredRecord } from "../../core/record.js";
import type { CompleteRequest } from "../../core/store.js";
import type { Reading } from "../compare-and-set.js";
import { COLUMNS, type RecordRow } from "../rows.js";
import type { Caller } from "./caller.js";
import { completionText } from "./changes.js";
import { readingOf } from "./records.js";
import { assignments, type Column, insertText, instantOf, isInstant, isNumber, SERVER_NOW } from "./rows.js";
import type { Tables } from "./schema.js";
import type { MysqlServer } from "./server.js";
import { listOf, parameters, type SqlValue } from "./sql.js";

export interface Statement {
  readonly sql: string;
  readonly values: SqlValue[];
}

export interface JoinStatements {
  read(keys: readonly RecordKey[]): Statement;
  readRevision(key: RecordKey): Statement;
  /** Adds records where there are none, and waits for nobody. */
  insert(rows: readonly (readonly [record: StoredRecord, revision: number])[]): readonly Statement[];
  /** Writes a record over the one that has `revision`, and waits for nobody. */
  takeOver(record: StoredRecord, revision: number, next: number): readonly Statement[];
  /** Bounds what cannot be told not to wait; gives what puts the setting back. */
  boundWaits(caller: Caller): Promise<() => Promise<void>>;
}

/** Between the values of one row. None of them contains it: they are digits and hexadecimal. */
const BETWEEN = "|";
/** What stands for NULL. */
const NOTHING = "-";

const ROW = [
  instantOf(SERVER_NOW),
  "revision",
  ...COLUMNS.map((column) => {
    const name = `\`${column}\``;
    if (isInstant(column)) return instantOf(name);
    return isNumber(column) ? name : `HEX(${name})`;
  }),
]
  .map((expression) => `COALESCE(${expression},'${NOTHING}')`)
  .join(",");

export function recordsTable({ records }: Tables, { database }: MysqlServer): string {
  return database === undefined ? records : `\`${database.replaceAll("`", "``")}\`.${records}`;
}

export function joinStatements(tables: Tables, server: MysqlServer): JoinStatements {
  const table = recordsTable(tables, server);
  const isMariadb = server.flavor === "mariadb";
  const withoutWait = isMariadb ? "SET STATEMENT innodb_lock_wait_timeout=0 FOR " : "";

  /** MySQL can say of a read alone that it shall not wait, so there a read comes first. */
  function lookFirst(keys: readonly RecordKey[]): readonly Statement[] {
    if (isMariadb) return [];
    const { bind, values } = parameters();
    const where = `WHERE \`key\` IN (${listOf(bind, keys)}) ORDER BY \`key\``;
    return [
      { sql: `SELECT '' AS answer FROM ${table} FORCE INDEX (pin) ${where} FOR UPDATE NOWAIT`, values },
    ];
  }

  return {
    read(keys) {
      const { bind, values } = parameters();
      const where = `WHERE \`key\` IN (${listOf(bind, keys)})`;
      return { sql: `SELECT CONCAT_WS('${BETWEEN}',${ROW}) AS answer FROM ${table} ${where}`, values };
    },
    readRevision: (key) => ({
      sql: `SELECT CONCAT(revision) AS answer FROM ${table} WHERE \`key\`=?`,
      values: [key],
    }),
    insert(rows) {
      const { bind, values } = parameters();
      const sql = `${withoutWait}${insertText(table, bind, rows, SERVER_NOW)}`;
      return [{ sql, values }];
    },
    takeOver(record, revision, next) {
      const { bind, values } = parameters();
      const set = assignments(bind, record, next);
      const sql = `${withoutWait}UPDATE ${table} SET ${set} WHERE \`key\`=${bind(record.key)} AND revision=${revision}`;
      return [...lookFirst([record.key]), { sql, values }];
    },
    async boundWaits(caller) {
      if (isMariadb) return async () => undefined;
      const [before] = await caller.ask("SELECT CONCAT(@@SESSION.innodb_lock_wait_timeout) AS answer");
      await caller.ask("SET SESSION innodb_lock_wait_timeout=1");
      return async () => {
        // A transaction that has been ended takes no statement, and its connection is not used again.
        const back = `SET SESSION innodb_lock_wait_timeout=${Number(before ?? 50)}`;
        await caller.ask(back).catch(() => undefined);
      };
    },
  };
}

/** Completes a claim of this transaction; with `readRevision` it shows whether it was there. */
export function completionInCall(
  tables: Tables,
  server: MysqlServer,
  request: CompleteRequest,
  revision: number,
): Statement {
  const { bind, values } = parameters();
  const sql = completionText(recordsTable(tables, server), request, server, bind, revision);
  return { sql, values };
}

/** What was read, by key. */
export function readingsOf(answers: readonly string[]): Map<string, Reading<number>> {
  return new Map(
    answers.map((answer) => {
      const [now, revision, ...texts] = answer.split(BETWEEN);
      const values = COLUMNS.map((column, index) => [column, valueIn(column, texts[index])] as const);
      const row: RecordRow = { ...Object.fromEntries(values), revision: Number(revision) };
      return [String(row.key), readingOf(row, Number(now))];
    }),
  );
}

function valueIn(column: Column, text: string | undefined): unknown {
  if (text === undefined || text === NOTHING) return null;
  if (isInstant(column) || isNumber(column)) return Number(text);
  const bytes = Buffer.from(text, "hex");
  return column === "body" ? bytes : bytes.toString("utf8");
}
