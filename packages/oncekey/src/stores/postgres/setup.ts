/**
 * @module
 * Checking the database before the first call, and migrating it when asked.
 *
 * Invariant: the store itself never changes a schema; what is missing is an error that says what to run.
 */
import { systemClock } from "../../core/clock.js";
import { configurationError } from "../../core/errors.js";
import type { ServerClock } from "../server-clock.js";
import type { RunStatement } from "./connections.js";
import type { PostgresConnection } from "./driver.js";
import { notMigrated, unavailable } from "./faults.js";
import { postgresMigrations, SCHEMA_VERSION, type Tables } from "./schema.js";

/** Older ones have not been tried. */
const OLDEST_SERVER = 130_000;

/** @throws OncekeyError `CONFIGURATION_INVALID` if the tables are missing or the server cannot be used, or `STORE_UNAVAILABLE`. */
export async function checkDatabase(run: RunStatement, tables: Tables, clock: ServerClock): Promise<void> {
  try {
    const sentAtMs = systemClock.monotonicMs();
    const [row] = await run({ name: "oncekey_check", text: textOf(tables) }, []);
    const [version, server, readOnly, nowMs] = row ?? [];
    clock.seen(Number(nowMs), sentAtMs, systemClock.monotonicMs());
    if (Number(server) < OLDEST_SERVER) throw configurationError("postgresStore", [tooOld(Number(server))]);
    if (readOnly === "yes") throw configurationError("postgresStore", [READ_ONLY]);
    const applied = Number(version ?? 0);
    if (applied < SCHEMA_VERSION) throw notMigrated(`version ${applied} of ${SCHEMA_VERSION}`);
    if (applied > SCHEMA_VERSION) throw configurationError("postgresStore", [tooNew(tables, applied)]);
  } catch (error) {
    throw unavailable(error);
  }
}

function textOf({ migrations }: Tables): string {
  return `SELECT max(version)::text, current_setting('server_version_num'),
    CASE WHEN pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' THEN 'yes' END, (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text
    FROM ${migrations}`;
}

const READ_ONLY =
  "the server is read-only (a standby, or default_transaction_read_only is on): connect to the primary";

function tooOld(server: number): string {
  return `the server is Postgres ${Math.floor(server / 10_000)}; 13 or later is needed`;
}

function tooNew({ migrations }: Tables, applied: number): string {
  return `${migrations} is at version ${applied}, this package knows ${SCHEMA_VERSION}: update the package, or use another tablePrefix`;
}

/** Any number: it only has to be the same for all who migrate. */
const MIGRATION_LOCK = 7_091_330_156;

/** Applies what has not been applied, in one transaction. Several processes may do so at once. */
export async function migrate<Tx>(connection: PostgresConnection<Tx>, tables: Tables): Promise<void> {
  try {
    const { schema, tablePrefix } = tables;
    const statements = postgresMigrations({ schema, tablePrefix });
    await connection.begin([`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`, statements]);
    await connection.commit();
    connection.free();
  } catch (error) {
    connection.destroy();
    throw unavailable(error);
  }
}
