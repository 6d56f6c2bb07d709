/**
 * @module
 * Which server it is, what differs between the two families, and how a session on it is set up.
 *
 * Invariant: whatever the server's or the account's defaults are (isolation, strictness, autocommit, time zone, character
 * set, time limits), the store's sessions have its own. Needed are MySQL 8.0.1 or MariaDB 10.6: earlier ones can neither
 * skip nor refuse a locked row.
 */
import { configurationError } from "../../core/errors.js";
import type { Session } from "./connections.js";

export type MysqlFlavor = "mysql" | "mariadb";

export interface MysqlServer {
  readonly flavor: MysqlFlavor;
  /** Where the tables are; a caller's own transaction may look elsewhere by default. */
  readonly database: string | undefined;
  /** What one packet may hold, in bytes. */
  readonly maxPacketBytes: number;
  /** What can make it forget, as it is set up now. */
  readonly weaknesses: readonly string[];
}

export interface SessionLimits {
  readonly timeoutMs: number;
}

interface Facts {
  readonly version: string;
  readonly name: string | null;
  readonly packet: number | string;
  readonly flush: number | string;
}

/** @throws OncekeyError `CONFIGURATION_INVALID` if the server is too old, or something else that speaks its protocol. */
export async function lookAtServer(session: Session, waitMs: number): Promise<MysqlServer> {
  const [facts] = (await session.ask(
    "SELECT VERSION() AS version,DATABASE() AS name,@@max_allowed_packet AS packet,@@innodb_flush_log_at_trx_commit AS flush",
    waitMs,
  )) as readonly Facts[];
  const version = facts?.version ?? "";
  const flavor: MysqlFlavor = /mariadb/i.test(version) ? "mariadb" : "mysql";
  if (!isNewEnough(version, flavor)) {
    throw configurationError("The database server", [
      `it is version ${version}; needed are MySQL 8.0.1 or MariaDB 10.6, or later`,
    ]);
  }
  return {
    flavor,
    database: facts?.name ?? undefined,
    maxPacketBytes: Number(facts?.packet ?? 0),
    weaknesses: Number(facts?.flush) === 1 ? [] : [FORGETS_ON_POWER_LOSS],
  };
}

const FORGETS_ON_POWER_LOSS =
  "innodb_flush_log_at_trx_commit is not 1: a power cut can take the last claims and completions with it, and their work may run again";

/** MariaDB once called itself 5.5.5-10.x, for replicas that would not go on with a number above 5. */
function isNewEnough(version: string, flavor: MysqlFlavor): boolean {
  const [, major = "0", minor = "0", patch = "0"] =
    /(\d+)\.(\d+)\.(\d+)/.exec(version.replace(/^5\.5\.5-/, "")) ?? [];
  const number = Number(major) * 1e6 + Number(minor) * 1e3 + Number(patch);
  return number >= (flavor === "mariadb" ? 10_006_000 : 8_000_001);
}

/**
 * For records: each statement its own transaction, and none that lands long after its caller has given up.
 *
 * `innodb_lock_wait_timeout` is a backstop for the few statements that can't refuse to wait.
 */
export function recordsSession(flavor: MysqlFlavor, { timeoutMs }: SessionLimits): string {
  const limit =
    flavor === "mariadb"
      ? `max_statement_time=${timeoutMs / 1_000}`
      : `max_execution_time=${Math.ceil(timeoutMs)}`;
  return [
    "SET NAMES utf8mb4",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    `SET SESSION sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',time_zone='+00:00',autocommit=1,lock_wait_timeout=1,innodb_lock_wait_timeout=1,${limit}`,
  ].join(";");
}

/**
 * `insert` as statements that do not wait for a row which another transaction has just written.
 *
 * MySQL cannot say so of an insertion. There a look at the rows comes first, and what slips in between waits for
 * `innodb_lock_wait_timeout` at most.
 */
export function withoutWaiting(flavor: MysqlFlavor, rows: string, insert: string): readonly string[] {
  if (flavor === "mariadb") return [`SET STATEMENT innodb_lock_wait_timeout=0 FOR ${insert}`];
  return [`${rows} FOR SHARE NOWAIT`, insert];
}

/** Locks rows that were read against changes, and refuses to wait for one that is being changed. */
export function sharedNowait(flavor: MysqlFlavor): string {
  return flavor === "mariadb" ? "LOCK IN SHARE MODE NOWAIT" : "FOR SHARE NOWAIT";
}
