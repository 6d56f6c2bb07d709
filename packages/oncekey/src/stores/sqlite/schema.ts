/**
 * @module
 * The tables, as numbered migrations that are only ever appended to.
 *
 * Invariant: a migration that has been released is never edited; a file that a later version has migrated
 * further is refused, because nobody here knows what its rows mean. When migrations run, and waiting for the
 * file to be free, is left to `setup.ts`.
 */
import { configurationError, type OncekeyError } from "../../core/errors.js";
import type { SqliteConnection } from "./driver.js";

export interface Tables {
  readonly records: string;
  readonly migrations: string;
  /** For the names of indices. */
  readonly prefix: string;
}

/** Part of SQL text, so nothing but a plain name may pass. */
const PREFIX = /^[a-z_][a-z0-9_]{0,39}$/i;

/** Problems of a prefix, as they are listed to whoever configured it. */
export function problemsOfPrefix(prefix: unknown): readonly string[] {
  if (typeof prefix === "string" && PREFIX.test(prefix) && !/^sqlite_/i.test(prefix)) return [];
  return [
    "tablePrefix is 1 to 40 letters, digits and underscores, starts with no digit and not with sqlite_",
  ];
}

export function tablesOf(prefix: string): Tables {
  return { records: `"${prefix}records"`, migrations: `"${prefix}migrations"`, prefix };
}

/**
 * Version 1.
 *
 * - A row has a number of its own (`id`), so that rows with large bodies are appended in order, and so that
 *   `list` pages through them without an index. A claim that takes over keeps the row and its number.
 * - `key` is unique: the one index that every call reads.
 * - `expires`: what `purge` removes, without reading what stays. Unknown records, which have no end, are not in it.
 * - `unfinished`: what an operator asks for. It holds no completed record and so stays small.
 * - `format` is the version of the row; instants are milliseconds since 1970 by the clock of the host;
 *   `expires_at IS NULL` = never; `body IS NULL` = a tombstone, if completed.
 */
function first({ records, prefix }: Tables): string {
  return `
    CREATE TABLE ${records} (
      id INTEGER PRIMARY KEY,
      format INTEGER NOT NULL,
      key TEXT NOT NULL UNIQUE,
      scope_id TEXT NOT NULL,
      operation TEXT NOT NULL,
      label TEXT,
      state TEXT NOT NULL,
      token TEXT NOT NULL,
      attempt INTEGER NOT NULL,
      fingerprint TEXT NOT NULL,
      guarantee TEXT NOT NULL,
      on_lapse TEXT NOT NULL,
      lease_ms INTEGER NOT NULL,
      retention_ms INTEGER NOT NULL,
      claimed_at INTEGER NOT NULL,
      changed_at INTEGER NOT NULL,
      lease_ends_at INTEGER NOT NULL,
      expires_at INTEGER,
      last_code TEXT,
      reconciler_token TEXT,
      reconciler_lease_ends_at INTEGER,
      head TEXT,
      body BLOB
    ) STRICT;
    CREATE INDEX "${prefix}records_expires" ON ${records} (expires_at) WHERE expires_at IS NOT NULL;
    CREATE INDEX "${prefix}records_unfinished" ON ${records} (state, id) WHERE state <> 'completed';
  `;
}

const MIGRATIONS: readonly ((tables: Tables) => string)[] = [first];

/**
 * Brings the tables up to date. To be called inside a write transaction.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` if a later version of this package has migrated the file.
 */
export function migrate(connection: SqliteConnection, tables: Tables, nowMs: number): void {
  connection.exec(
    `CREATE TABLE IF NOT EXISTS ${tables.migrations} (
       version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL
     ) STRICT`,
  );
  const applied = appliedVersion(connection, tables);
  if (applied > MIGRATIONS.length) throw tooNew(tables, applied);
  for (const [index, migration] of MIGRATIONS.entries()) {
    if (index < applied) continue;
    connection.exec(migration(tables));
    connection.prepare(`INSERT INTO ${tables.migrations} VALUES (?, ?)`).run([index + 1, nowMs]);
  }
}

/** Whether nothing is left to do, read without a write transaction. */
export function isMigrated(connection: SqliteConnection, tables: Tables): boolean {
  const name = `${tables.prefix}migrations`;
  const sql = "SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = ?";
  if (connection.prepare(sql).get([name]) === undefined) return false;
  const applied = appliedVersion(connection, tables);
  if (applied > MIGRATIONS.length) throw tooNew(tables, applied);
  return applied === MIGRATIONS.length;
}

function appliedVersion(connection: SqliteConnection, { migrations }: Tables): number {
  const row = connection.prepare(`SELECT max(version) AS version FROM ${migrations}`).get([]);
  return Number(row?.version ?? 0);
}

function tooNew(tables: Tables, applied: number): OncekeyError<"CONFIGURATION_INVALID"> {
  return configurationError("The database", [
    `${tables.migrations} is at version ${applied}, this package knows ${MIGRATIONS.length}: update the package, or use another tablePrefix`,
  ]);
}
