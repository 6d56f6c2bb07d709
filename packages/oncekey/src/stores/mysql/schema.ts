/**
 * @module
 * The tables, as numbered migrations that are only ever appended to.
 *
 * Invariant: a migration that has been released is never edited, and each can be run again after it was cut off halfway,
 * for MySQL commits around every change of a table. They are applied only when asked. A database that a later version has
 * migrated further is refused, because nobody here knows what its rows mean.
 */
import { configurationError, OncekeyError } from "../../core/errors.js";
import { unknownOptions } from "../../core/policy-checks.js";
import type { Session } from "./connections.js";
import { errnoOf } from "./driver.js";
import { literal } from "./sql.js";

export interface Tables {
  readonly records: string;
  readonly migrations: string;
  readonly prefix: string;
}

/** Part of SQL text, so nothing but a plain name may pass. */
const PREFIX = /^[a-z_][a-z0-9_]{0,39}$/i;

/** Problems of a prefix, as they are listed to whoever configured it. */
export function problemsOfPrefix(prefix: unknown): readonly string[] {
  if (typeof prefix === "string" && PREFIX.test(prefix)) return [];
  return ["tablePrefix is 1 to 40 letters, digits and underscores, and starts with no digit"];
}

export function tablesOf(prefix: string): Tables {
  return { records: `\`${prefix}records\``, migrations: `\`${prefix}migrations\``, prefix };
}

/** Identifiers are compared byte by byte: neither case nor accents nor trailing spaces make two keys one. */
const NAME = "CHARACTER SET ascii COLLATE ascii_bin";

/** Bytes that a column of names takes. */
export const MAX_NAME_BYTES = 255;
/** Bytes that a column of text takes. */
export const MAX_TEXT_BYTES = 65_535;

/**
 * Version 1.
 *
 * - `key` is the primary key: looking for a rival while inserting then locks that one row and no gap beside it, which is
 *   what deadlocks come from.
 * - `pin`: an entry of it can be locked apart from its row. It is touched by what takes a claim from its holder (another
 *   token, or no row), and not by what the holder does: renewals and the completion.
 * - `revision` is drawn anew by every write, renewals included: it names this very state.
 * - `ends`: what `purge` removes and what an operator lists by state, in one index, so that a write maintains no second one.
 * - Instants are of the server's clock in UTC, with microseconds; `expires_at IS NULL` = never; `body IS NULL` = a
 *   tombstone, if completed. `format` is the version of the row.
 */
function first({ records }: Tables): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${records} (
  \`key\` VARCHAR(${MAX_NAME_BYTES}) ${NAME} NOT NULL,
  format SMALLINT UNSIGNED NOT NULL,
  revision BIGINT UNSIGNED NOT NULL,
  scope_id VARCHAR(${MAX_NAME_BYTES}) ${NAME} NOT NULL,
  operation TEXT NOT NULL,
  label TEXT,
  state VARCHAR(16) ${NAME} NOT NULL,
  token VARCHAR(${MAX_NAME_BYTES}) ${NAME} NOT NULL,
  attempt BIGINT UNSIGNED NOT NULL,
  fingerprint VARCHAR(${MAX_NAME_BYTES}) ${NAME} NOT NULL,
  guarantee VARCHAR(16) ${NAME} NOT NULL,
  on_lapse VARCHAR(16) ${NAME} NOT NULL,
  lease_ms BIGINT UNSIGNED NOT NULL,
  retention_ms BIGINT UNSIGNED NOT NULL,
  claimed_at DATETIME(6) NOT NULL,
  changed_at DATETIME(6) NOT NULL,
  lease_ends_at DATETIME(6) NOT NULL,
  expires_at DATETIME(6),
  last_code TEXT,
  reconciler_token VARCHAR(${MAX_NAME_BYTES}) ${NAME},
  reconciler_lease_ends_at DATETIME(6),
  head LONGTEXT,
  body LONGBLOB,
  PRIMARY KEY (\`key\`),
  UNIQUE KEY pin (\`key\`, token),
  KEY ends (state, expires_at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
  ];
}

const MIGRATIONS: readonly ((tables: Tables) => readonly string[])[] = [first];

/** Each migration as its statements, the note that it was applied included. */
function migrationsOf(tables: Tables): readonly (readonly string[])[] {
  return MIGRATIONS.map((migration, index) => [
    ...migration(tables),
    `INSERT IGNORE INTO ${tables.migrations} (version, applied_at) VALUES (${index + 1}, UTC_TIMESTAMP(6))`,
  ]);
}

function migrationsTable({ migrations }: Tables): string {
  return `CREATE TABLE IF NOT EXISTS ${migrations} (
  version INT UNSIGNED NOT NULL PRIMARY KEY,
  applied_at DATETIME(6) NOT NULL
) ENGINE=InnoDB`;
}

export interface MysqlMigrationsOptions {
  /** As given to the store. @defaultValue "oncekey_" */
  readonly tablePrefix?: string | undefined;
  /** The version that is there already. @defaultValue 0 */
  readonly from?: number | undefined;
}

export const DEFAULT_PREFIX = "oncekey_";

/**
 * The SQL that makes the tables, for whatever applies migrations in your project. It is the same text for the same version of
 * this package, and harmless to apply twice.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` if the prefix or `from` is none.
 */
export function mysqlMigrations(options: MysqlMigrationsOptions = {}): string {
  const { tablePrefix = DEFAULT_PREFIX, from = 0 } = options;
  const problems = [
    ...unknownOptions(options, new Set(["tablePrefix", "from"])),
    ...problemsOfPrefix(tablePrefix),
  ];
  if (!Number.isInteger(from) || from < 0 || from > MIGRATIONS.length) {
    problems.push(`from is a version from 0 to ${MIGRATIONS.length}`);
  }
  if (problems.length > 0) throw configurationError("mysqlMigrations", problems);
  const tables = tablesOf(tablePrefix);
  const statements = [migrationsTable(tables), ...migrationsOf(tables).slice(from).flat()];
  return statements.map((statement) => `${statement};\n`).join("\n");
}

/** Changing a large table takes its time, and whoever waits for somebody else to do it waits as long. */
const MIGRATE_MS = 600_000;

/**
 * Brings the tables up to date, one process at a time.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` if a later version of this package has migrated the database.
 */
export async function migrate(session: Session, tables: Tables): Promise<void> {
  const name = `CONCAT(DATABASE(),${literal(`.${tables.prefix}migrations`)})`;
  // Names of locks are at most 64 characters long.
  const lock = `SHA1(${name})`;
  const ask = (sql: string) => session.ask(sql, MIGRATE_MS);
  const taken = (await ask(`SELECT GET_LOCK(${lock},${MIGRATE_MS / 1_000}) AS taken`)) as readonly Taken[];
  if (Number(taken[0]?.taken) !== 1) throw new OncekeyError("STORE_UNAVAILABLE", STILL_MIGRATING);
  try {
    await ask(migrationsTable(tables));
    const applied = await appliedVersion(session, tables, MIGRATE_MS);
    if (applied > MIGRATIONS.length) throw tooNew(tables, applied);
    for (const statement of migrationsOf(tables).slice(applied).flat()) await ask(statement);
  } finally {
    await ask(`DO RELEASE_LOCK(${lock})`).catch(() => undefined);
  }
}

interface Taken {
  readonly taken: unknown;
}

const STILL_MIGRATING = "Another process has been migrating these tables for ten minutes. Nothing was done.";

/** @throws OncekeyError `CONFIGURATION_INVALID` unless the tables are as this version needs them. */
export async function checkTables(session: Session, tables: Tables, waitMs: number): Promise<void> {
  const applied = await appliedVersion(session, tables, waitMs).catch((error: unknown) => {
    if (errnoOf(error) === NO_SUCH_TABLE) return 0;
    throw error;
  });
  if (applied > MIGRATIONS.length) throw tooNew(tables, applied);
  if (applied < MIGRATIONS.length) throw tooOld(tables, applied);
}

const NO_SUCH_TABLE = 1146;

async function appliedVersion(session: Session, { migrations }: Tables, waitMs: number): Promise<number> {
  const rows = (await session.ask(`SELECT MAX(version) AS version FROM ${migrations}`, waitMs)) as readonly {
    readonly version: unknown;
  }[];
  return Number(rows[0]?.version ?? 0);
}

export function tooOld(tables: Tables, applied: number): OncekeyError<"CONFIGURATION_INVALID"> {
  const found = applied === 0 ? "are missing" : `are at version ${applied} of ${MIGRATIONS.length}`;
  return configurationError("The database", [
    `its tables (${tables.prefix}records, ${tables.prefix}migrations) ${found}: run \`await store.migrate()\` once, or apply what mysqlMigrations() prints`,
  ]);
}

function tooNew(tables: Tables, applied: number): OncekeyError<"CONFIGURATION_INVALID"> {
  return configurationError("The database", [
    `${tables.prefix}migrations is at version ${applied}, this package knows ${MIGRATIONS.length}: update the package, or use another tablePrefix`,
  ]);
}
