/**
 * @module
 * The tables, as numbered migrations that are only ever appended to.
 *
 * Invariant: a migration that has been released is never edited; applying all of them again changes nothing. They are
 * applied only by whoever asks for it; waiting and checking are left to `setup.ts`.
 */
import { configurationError } from "../../core/errors.js";
import { unknownOptions } from "../../core/policy-checks.js";

export interface TableNames {
  /** The schema of the tables: names are never left to a session's `search_path`. */
  readonly schema: string;
  /** Begins the names of the tables. */
  readonly tablePrefix: string;
}

export interface Tables extends TableNames {
  readonly records: string;
  readonly migrations: string;
  /** For `LISTEN`. */
  readonly channel: string;
}

export const DEFAULT_NAMES: TableNames = { schema: "public", tablePrefix: "oncekey_" };

/** Part of SQL text, so nothing but a plain name may pass. Names of indices are longer by up to 19 letters, of 63. */
const NAME = /^[a-z_][a-z0-9_]{0,39}$/;

/** Problems of the names, as they are listed to whoever configured them. */
export function problemsOfNames({ schema, tablePrefix }: TableNames): readonly string[] {
  const rule = "is 1 to 40 small letters, digits and underscores, and starts with no digit";
  return [
    ...(typeof schema === "string" && NAME.test(schema) && !schema.startsWith("pg_")
      ? []
      : [`schema ${rule}, nor with pg_`]),
    ...(typeof tablePrefix === "string" && NAME.test(tablePrefix) ? [] : [`tablePrefix ${rule}`]),
  ];
}

export function tablesOf({ schema, tablePrefix }: TableNames): Tables {
  return {
    schema,
    tablePrefix,
    records: `"${schema}"."${tablePrefix}records"`,
    migrations: `"${schema}"."${tablePrefix}migrations"`,
    channel: `${tablePrefix}ended`,
  };
}

/**
 * Version 1.
 *
 * - `key` is a digest: compared byte by byte (`COLLATE "C"`), it is the one index that every call reads, and the order of
 *   `list`.
 * - `expires_at` stands only in records that have ended; of a claim the end follows from its lease. So renewing a lease changes no
 *   column that is indexed, and the index of what `purge` removes holds neither claims nor unknown records.
 * - `unfinished` is what an operator asks for. It holds no completed record and so stays small.
 * - `revision` changes with every write: whoever has read a record writes over that state of it and no other.
 * - `format` is the version of the row; `body IS NULL` is a tombstone, if completed.
 */
function first({ records, migrations, tablePrefix }: Tables): string {
  return `CREATE TABLE IF NOT EXISTS ${migrations} (
  version integer PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE IF NOT EXISTS ${records} (
  key text COLLATE "C" PRIMARY KEY,
  format integer NOT NULL,
  scope_id text COLLATE "C" NOT NULL,
  operation text NOT NULL,
  label text,
  state text COLLATE "C" NOT NULL,
  token text COLLATE "C" NOT NULL,
  attempt integer NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  guarantee text COLLATE "C" NOT NULL,
  on_lapse text COLLATE "C" NOT NULL,
  lease_ms bigint NOT NULL,
  retention_ms bigint NOT NULL,
  claimed_at timestamptz NOT NULL,
  changed_at timestamptz NOT NULL,
  lease_ends_at timestamptz NOT NULL,
  expires_at timestamptz,
  last_code text,
  reconciler_token text COLLATE "C",
  reconciler_lease_ends_at timestamptz,
  revision bigint NOT NULL,
  head text,
  body bytea
);

CREATE INDEX IF NOT EXISTS "${tablePrefix}records_expires" ON ${records} (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS "${tablePrefix}records_unfinished" ON ${records} (state, key) WHERE state <> 'completed';`;
}

const MIGRATIONS: readonly ((tables: Tables) => string)[] = [first];

/** What this package needs. */
export const SCHEMA_VERSION = MIGRATIONS.length;

export interface PostgresMigrationsOptions {
  /** @defaultValue "public" */
  readonly schema?: string | undefined;
  /** @defaultValue "oncekey_" */
  readonly tablePrefix?: string | undefined;
  /**
   * Leaves out the migrations up to this version, which have been applied before.
   *
   * @defaultValue 0
   */
  readonly from?: number | undefined;
}

/**
 * The SQL that makes the tables, for whatever applies migrations in your project. It is the same text for the same version
 * of this package, and harmless to apply twice. The schema itself has to be there.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` if a name or `from` is none.
 */
export function postgresMigrations(options: PostgresMigrationsOptions = {}): string {
  const { schema = DEFAULT_NAMES.schema, tablePrefix = DEFAULT_NAMES.tablePrefix, from = 0 } = options;
  const problems = [
    ...unknownOptions(options, new Set(["schema", "tablePrefix", "from"])),
    ...problemsOfNames({ schema, tablePrefix }),
  ];
  if (!Number.isInteger(from) || from < 0 || from > SCHEMA_VERSION) {
    problems.push(`from is a version from 0 to ${SCHEMA_VERSION}`);
  }
  if (problems.length > 0) throw configurationError("postgresMigrations", problems);
  const tables = tablesOf({ schema, tablePrefix });
  return MIGRATIONS.slice(from)
    .map((migration, index) => scriptOf(migration(tables), from + index + 1, tables))
    .join("\n");
}

function scriptOf(sql: string, version: number, { migrations }: Tables): string {
  return `-- oncekey, version ${version}
${sql}

INSERT INTO ${migrations} (version) VALUES (${version}) ON CONFLICT (version) DO NOTHING;
`;
}
