/**
 * @module
 * Every statement on the records.
 *
 * Invariants: each is one transaction by itself and needs nothing of the session; time is the server's, read once in each
 * (`clock_timestamp()`, which unlike `now()` does not stand still inside a transaction); rows are written only by whoever has
 * the token or the revision; a row that somebody has locked is passed over (`SKIP LOCKED`), never waited for. Renewing and
 * completing take a lock that goes together with a pin (`FOR KEY SHARE`), everything that ends a claim from outside one that
 * does not.
 */
import { COLUMNS } from "../rows.js";
import { assigned, inMs, later, selected } from "./codec.js";
import type { PostgresStatement } from "./driver.js";
import type { Tables } from "./schema.js";

/** How much of a row is locked before it is written. */
export type LockStrength = "FOR UPDATE" | "FOR NO KEY UPDATE";

export type Statements = ReturnType<typeof statementsOf>;

export const CLOCK = "clock AS MATERIALIZED (SELECT clock_timestamp() AS now)";
/** Claims of this version that have not expired; `r` is the row. */
export const OPEN_CLAIM = `r.state = 'claimed' AND r.format = 1 AND clock.now < ${later("r.lease_ends_at", "r.retention_ms")}`;

export function statementsOf({ records, channel }: Tables) {
  const named = (name: string, text: string): PostgresStatement => ({ name: `oncekey_${name}`, text });
  return {
    claim: named("claim", claimOf(records)),
    complete: named("complete", completeOf(records)),
    completeInWork: named("complete_in_work", completeInWorkOf(records)),
    prepareEnd: prepareEndOf(records),
    extend: named("extend", extendOf(records)),
    release: named(
      "release",
      `WITH ${CLOCK}, held AS MATERIALIZED (
         SELECT r.key FROM ${records} r, clock
         WHERE r.key = $1::text AND r.token = $2::text AND ${OPEN_CLAIM}
         FOR UPDATE OF r SKIP LOCKED)
       DELETE FROM ${records} r USING held WHERE r.key = held.key RETURNING r.key`,
    ),
    releaseKept: named(
      "release_kept",
      `WITH ${CLOCK}, held AS MATERIALIZED (
         SELECT r.key, clock.now FROM ${records} r, clock
         WHERE r.key = $1::text AND r.token = $2::text AND ${OPEN_CLAIM}
         FOR UPDATE OF r SKIP LOCKED)
       UPDATE ${records} r SET state = 'released', last_code = $3::text, changed_at = held.now,
         expires_at = ${later("held.now", "r.retention_ms")}, revision = r.revision + 1
       FROM held WHERE r.key = held.key RETURNING r.key`,
    ),
    read: named("read", readOf(records, "with-body")),
    glance: named("glance", readOf(records, "without-body")),
    settle: named("settle", readOf(records, "without-body", "FOR UPDATE")),
    insert: named("insert", insertOf(records)),
    update: named("update", updateOf(records, "FOR UPDATE")),
    updateMild: named("update_mild", updateOf(records, "FOR NO KEY UPDATE")),
    remove: named(
      "remove",
      `WITH held AS MATERIALIZED (
         SELECT key, revision FROM ${records} WHERE key = $1::text FOR UPDATE SKIP LOCKED), gone AS (
         DELETE FROM ${records} r USING held
         WHERE r.key = held.key AND held.revision = $2::text::bigint AND ${inTime(3)} RETURNING r.key)
       ${whatBecame(records, "gone")}`,
    ),
    discard: { name: undefined, text: `DELETE FROM ${records} WHERE key = $1::text` },
    status: named(
      "status",
      `WITH ${CLOCK}
       SELECT asked.place::text, ${inMs("clock.now")}, ${selected("r", "without-body")}
       FROM unnest($1::text::text[]) WITH ORDINALITY AS asked (key, place) CROSS JOIN clock
       LEFT JOIN LATERAL (SELECT * FROM ${records} t WHERE t.key = asked.key LIMIT 1) r ON true
       WHERE CASE WHEN r.key IS NULL THEN NOT pg_try_advisory_xact_lock_shared(${keyLock("asked.key")}) ELSE true END`,
    ),
    purge: named("purge", purgeOf(records)),
    // Its own commit need not wait for the disk: what it says is only a hint.
    notify: named(
      "notify",
      `SELECT set_config('synchronous_commit', 'off', true), pg_notify('${channel}', said.payload)::text
       FROM unnest($1::text::text[]) AS said (payload)`,
    ),
  } as const;
}

/** The advisory lock of a key, as a number that nothing else is likely to use. */
export function keyLock(key: string): string {
  return `hashtextextended(${key}, 7306086967318834788)`;
}

/**
 * Inserts what is not there, and reads what is. A row that another transaction has committed since the statement's snapshot is
 * neither: the entry comes back with nothing. So does one whose key a transaction of the application's has claimed and not yet
 * committed: nobody can see that row, and whoever inserted it again would wait for it, and a whole batch with it. One whose
 * time is over when the server gets to it is not inserted.
 */
function claimOf(records: string): string {
  return `WITH ${CLOCK}, asked AS MATERIALIZED (
      SELECT * FROM unnest($1::text::text[], $2::text::text[], $3::text::text[], $4::text::text[], $5::text::text[],
        $6::text::text[], $7::text::text[], $8::text::text[], $9::text::float8[], $10::text::float8[], $11::text::float8[])
      AS a (key, scope_id, operation, label, token, fingerprint, guarantee, on_lapse, lease_ms, retention_ms, until)),
    made AS (
      INSERT INTO ${records} (key, format, scope_id, operation, label, state, token, attempt, fingerprint, guarantee,
        on_lapse, lease_ms, retention_ms, claimed_at, changed_at, lease_ends_at, revision)
      SELECT a.key, 1, a.scope_id, a.operation, a.label, 'claimed', a.token, 1, a.fingerprint, a.guarantee,
        a.on_lapse, a.lease_ms, a.retention_ms, now, now, ${later("now", "a.lease_ms")}, ${FIRST_REVISION}
      FROM asked a CROSS JOIN clock
      WHERE (a.until IS NULL OR now < to_timestamp(a.until / 1000)) AND pg_try_advisory_xact_lock_shared(${keyLock("a.key")})
      ON CONFLICT (key) DO NOTHING
      RETURNING key)
    SELECT a.key, CASE WHEN made.key IS NOT NULL THEN 'made'
        WHEN a.until IS NOT NULL AND now >= to_timestamp(a.until / 1000) THEN 'late' END,
      ${inMs("now")}, ${selected("r", "with-body")}
    FROM asked a CROSS JOIN clock LEFT JOIN made ON made.key = a.key
    LEFT JOIN LATERAL (SELECT * FROM ${records} t WHERE t.key = a.key AND made.key IS NULL LIMIT 1) r ON true`;
}

/** No state that a record had before it was removed has the revision of a state of its successor. */
export const FIRST_REVISION = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

function completeOf(records: string): string {
  return `WITH ${CLOCK}, held AS MATERIALIZED (
      SELECT a.*, clock.now FROM unnest($1::text::text[], $2::text::text[], $3::text::float8[], $4::text::text[],
        $5::text::int[], $6::text::int[]) AS a (key, token, retention_ms, head, starts, bytes)
      CROSS JOIN clock CROSS JOIN LATERAL (
        SELECT r.key FROM ${records} r WHERE r.key = a.key AND r.token = a.token AND ${OPEN_CLAIM}
        FOR NO KEY UPDATE OF r SKIP LOCKED) r)
    UPDATE ${records} r SET state = 'completed', retention_ms = held.retention_ms, changed_at = held.now,
      expires_at = ${later("held.now", "held.retention_ms")}, revision = r.revision + 1, head = held.head,
      body = CASE WHEN held.bytes IS NOT NULL THEN substring($7::bytea FROM held.starts FOR held.bytes) END
    FROM held WHERE r.key = held.key RETURNING r.key`;
}

/**
 * The same, prepared under a name of SQL, so that it can go together with the COMMIT after it. Nothing completed is a division by
 * zero, which keeps the COMMIT from being run.
 */
function prepareEndOf(records: string): string {
  return `PREPARE oncekey_end (text, text, float8, text, bytea) AS
    WITH ${CLOCK}, changed AS (
      UPDATE ${records} r SET state = 'completed', retention_ms = $3, changed_at = clock.now,
        expires_at = ${later("clock.now", "$3")}, revision = r.revision + 1, head = $4, body = $5
      FROM clock WHERE r.key = $1 AND r.token = $2 AND ${OPEN_CLAIM} RETURNING r.key)
    SELECT 1 / count(*) FROM changed`;
}

/**
 * The last statement of work. `ended`: it does not run in the transaction that was begun, whatever has ended that one. It waits
 * for whoever holds the row, which is never long.
 */
function completeInWorkOf(records: string): string {
  const isMarked = "current_setting('oncekey.transaction', true) = $6::text";
  return `WITH ${CLOCK}, changed AS (
      UPDATE ${records} r SET state = 'completed', retention_ms = $3::text::float8, changed_at = clock.now,
        expires_at = ${later("clock.now", "$3::text::float8")}, revision = r.revision + 1, head = $4::text, body = $5::bytea
      FROM clock WHERE r.key = $1::text AND r.token = $2::text AND ${OPEN_CLAIM} AND ${isMarked} RETURNING r.key)
    SELECT CASE WHEN NOT coalesce(${isMarked}, false) THEN 'ended' WHEN EXISTS (SELECT FROM changed) THEN 'done'
      ELSE 'other' END`;
}

function extendOf(records: string): string {
  return `WITH ${CLOCK}, held AS MATERIALIZED (
      SELECT a.*, clock.now FROM unnest($1::text::text[], $2::text::text[], $3::text::float8[]) AS a (key, token, lease_ms)
      CROSS JOIN clock CROSS JOIN LATERAL (
        SELECT r.key FROM ${records} r WHERE r.key = a.key AND r.token = a.token AND ${OPEN_CLAIM}
        FOR NO KEY UPDATE OF r SKIP LOCKED) r)
    UPDATE ${records} r SET lease_ms = held.lease_ms, lease_ends_at = ${later("held.now", "held.lease_ms")},
      revision = r.revision + 1
    FROM held WHERE r.key = held.key RETURNING r.key`;
}

function readOf(records: string, body: "with-body" | "without-body", lock = ""): string {
  return `WITH ${CLOCK} SELECT ${inMs("clock.now")}, ${selected("r", body)}
    FROM clock LEFT JOIN LATERAL (SELECT * FROM ${records} t WHERE t.key = $1::text LIMIT 1 ${lock}) r ON true`;
}

/** The parameter is the instant after which whoever asked has been refused. */
function inTime(param: number): string {
  return `clock_timestamp() < to_timestamp($${param}::text::float8 / 1000)`;
}

/** The last parameter is when it has to be done. */
function insertOf(records: string): string {
  return `INSERT INTO ${records} (${COLUMNS.join(", ")}, revision) SELECT ${assigned(1)}, ${FIRST_REVISION}
    WHERE ${inTime(COLUMNS.length + 1)} ON CONFLICT (key) DO NOTHING RETURNING 'written'`;
}

/** The last parameters are the revision that was read, and when it has to be done. */
function updateOf(records: string, lock: LockStrength): string {
  return `WITH held AS MATERIALIZED (
      SELECT key, revision FROM ${records} WHERE key = $2::text ${lock} SKIP LOCKED), changed AS (
      UPDATE ${records} r SET (${COLUMNS.join(", ")}, revision) = ROW(${assigned(1)}, r.revision + 1)
      FROM held WHERE r.key = held.key AND held.revision = $${COLUMNS.length + 1}::text::bigint
        AND ${inTime(COLUMNS.length + 2)} RETURNING r.key)
    ${whatBecame(records, "changed").replaceAll("$1", "$2")}`;
}

/** `written`; `locked` if the row is there and somebody holds it; `other` if it is not what was read. */
function whatBecame(records: string, done: string): string {
  return `SELECT CASE WHEN EXISTS (SELECT FROM ${done}) THEN 'written' WHEN EXISTS (SELECT FROM held) THEN 'other'
      WHEN EXISTS (SELECT FROM ${records} t WHERE t.key = $1::text) THEN 'locked' ELSE 'other' END`;
}

/** Claims have no `expires_at`: those that have expired are found among the unfinished, of which there are few. */
function purgeOf(records: string): string {
  return `WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), ended AS MATERIALIZED (
      SELECT r.key FROM ${records} r WHERE r.expires_at <= (SELECT now FROM clock) AND r.state IN ('completed', 'released')
      ORDER BY r.expires_at LIMIT $1::text::int FOR UPDATE SKIP LOCKED), lapsed AS MATERIALIZED (
      SELECT r.key FROM ${records} r
      WHERE r.state <> 'completed' AND r.state = 'claimed'
        AND ${later("r.lease_ends_at", "r.retention_ms")} <= (SELECT now FROM clock)
      LIMIT $1::text::int - (SELECT count(*) FROM ended) FOR UPDATE SKIP LOCKED), gone AS (
      DELETE FROM ${records} r USING (SELECT key FROM ended UNION ALL SELECT key FROM lapsed) doomed
      WHERE r.key = doomed.key RETURNING r.key)
    SELECT count(*)::text FROM gone`;
}
