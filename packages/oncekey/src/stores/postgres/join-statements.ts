/**
 * @module
 * The statements that run in a transaction of the application's.
 *
 * Invariants: each is a SELECT with one text column `answer`, takes its parameters once and in order, and puts back what it
 * set. A claim takes an advisory lock on its key first: whoever else claims it in a transaction waits there, and whoever claims
 * it outside of one sees the lock and passes it over, rather than wait for the row that nobody can see yet.
 */
import { COLUMNS } from "../rows.js";
import { assigned, inMs, later, selected } from "./codec.js";
import type { Tables } from "./schema.js";
import { CLOCK, FIRST_REVISION, keyLock, OPEN_CLAIM } from "./statements.js";

export type JoinStatements = ReturnType<typeof joinStatementsOf>;

export function joinStatementsOf({ records }: Tables) {
  return {
    claim: claimOf(records),
    read: `WITH ${CLOCK} SELECT json_build_array(${inMs("clock.now")}, ${selected("r", "with-body")})::text AS answer
      FROM clock CROSS JOIN LATERAL (SELECT * FROM ${records} t WHERE t.key = ANY ($1::text::text[])) r`,
    takeOver: takeOverOf(records),
    complete: completeOf(records),
    pin: pinOf(records),
    stillIn: STILL_IN,
  } as const;
}

/**
 * Claims what is not there, in the order of the keys. Values that are asked for again and again are materialized, or they
 * would be asked for out of their turn.
 */
function claimOf(records: string): string {
  return `WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS lock_timeout),
    bound AS MATERIALIZED (SELECT set_config('lock_timeout', $1::text, true) FROM before),
    asked AS MATERIALIZED (
      SELECT a.*, pg_advisory_xact_lock(${keyLock("a.key")}) FROM (
        SELECT a.* FROM unnest($2::text::text[], $3::text::text[], $4::text::text[], $5::text::text[], $6::text::text[],
          $7::text::text[], $8::text::text[], $9::text::text[], $10::text::float8[], $11::text::float8[])
        AS a (key, scope_id, operation, label, token, fingerprint, guarantee, on_lapse, lease_ms, retention_ms), bound
        ORDER BY a.key COLLATE "C" OFFSET 0) a),
    made AS (
      INSERT INTO ${records} (key, format, scope_id, operation, label, state, token, attempt, fingerprint, guarantee,
        on_lapse, lease_ms, retention_ms, claimed_at, changed_at, lease_ends_at, revision)
      SELECT a.key, 1, a.scope_id, a.operation, a.label, 'claimed', a.token, 1, a.fingerprint, a.guarantee,
        a.on_lapse, a.lease_ms, a.retention_ms, clock_timestamp(), clock_timestamp(),
        ${later("clock_timestamp()", "a.lease_ms")}, ${FIRST_REVISION}
      FROM asked a ORDER BY a.key COLLATE "C"
      ON CONFLICT (key) DO NOTHING RETURNING key),
    done AS MATERIALIZED (SELECT coalesce(json_agg(made.key), '[]') AS keys FROM made)
    SELECT json_build_array(done.keys, set_config('lock_timeout', before.lock_timeout, true))::text AS answer
    FROM done, before`;
}

/** Writes over the very state that was read. It takes the lock that a pin keeps others from. */
function takeOverOf(records: string): string {
  const written = COLUMNS.length;
  return `WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS lock_timeout),
    bound AS MATERIALIZED (SELECT set_config('lock_timeout', $1::text, true) FROM before),
    asked AS MATERIALIZED (
      SELECT a.* FROM (VALUES (${assigned(2)})) AS a (${COLUMNS.join(", ")}), bound),
    held AS MATERIALIZED (
      SELECT r.key FROM ${records} r, bound WHERE r.key = $${written + 2}::text
        AND r.revision = $${written + 3}::text::bigint FOR UPDATE OF r),
    changed AS (
      UPDATE ${records} r SET (${COLUMNS.join(", ")}, revision) = (
        SELECT ${COLUMNS.map((column) => `a.${column}`).join(", ")}, r.revision + 1 FROM asked a)
      FROM held WHERE r.key = held.key RETURNING r.key),
    done AS MATERIALIZED (SELECT count(*) AS rows FROM changed)
    SELECT json_build_array(done.rows, set_config('lock_timeout', before.lock_timeout, true))::text AS answer
    FROM done, before`;
}

function completeOf(records: string): string {
  return `WITH ${CLOCK}, asked AS MATERIALIZED (
      SELECT $1::text AS key, $2::text AS token, $3::text::float8 AS retention_ms, $4::text AS head,
        decode($5::text, 'base64') AS body),
    changed AS (
      UPDATE ${records} r SET state = 'completed', retention_ms = asked.retention_ms, changed_at = clock.now,
        expires_at = ${later("clock.now", "asked.retention_ms")}, revision = r.revision + 1, head = asked.head, body = asked.body
      FROM asked, clock WHERE r.key = asked.key AND r.token = asked.token AND r.state = 'claimed' RETURNING r.key)
    SELECT count(*)::text AS answer FROM changed`;
}

/** It marks the transaction as well, by which `stillIn` tells whether there is one: outside, each statement is one of its own. */
function pinOf(records: string): string {
  return `WITH ${CLOCK}, asked AS MATERIALIZED (SELECT $1::text AS key, $2::text AS token),
    marked AS MATERIALIZED (SELECT set_config('oncekey.pinned', $3::text, true)),
    held AS MATERIALIZED (
      SELECT r.key FROM ${records} r, asked, clock, marked
      WHERE r.key = asked.key AND r.token = asked.token AND ${OPEN_CLAIM}
      FOR KEY SHARE OF r SKIP LOCKED)
    SELECT CASE WHEN EXISTS (SELECT FROM held) THEN 'pinned'
      WHEN EXISTS (SELECT FROM ${records} r, asked, clock
        WHERE r.key = asked.key AND r.token = asked.token AND ${OPEN_CLAIM}) THEN 'busy'
      ELSE 'not-held' END AS answer`;
}

const STILL_IN = "SELECT coalesce(current_setting('oncekey.pinned', true), '') AS answer";
