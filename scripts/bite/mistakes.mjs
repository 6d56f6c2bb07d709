/**
 * @module scripts/bite/mistakes
 *
 * Known mistakes, each as the smallest change that makes it, and the test that has to notice. `docs/reliability.md` shows them as a
 * table; `npm run bite` makes them one by one and runs their tests.
 */

import { consumerMistakes } from "./consumers.mjs";
import { jobMistakes } from "./jobs.mjs";
import { stepMistakes } from "./steps.mjs";

/**
 * @typedef {object} Mistake
 * @property {string} name as the table says it
 * @property {string} file below `packages/oncekey/src`
 * @property {string} find occurs there once
 * @property {string} replace
 * @property {string} test below `packages/oncekey`
 * @property {string} [only] a part of the name of the tests that are run
 */

const postgresFaults = "test/servers/faults/postgres.test.ts";
const sqliteContract = "test/stores/sqlite-libsql.contract.test.ts";
const postgresContract = "test/servers/postgres/pg.contract.test.ts";
const redisContract = "test/servers/redis/ioredis.contract.test.ts";

/** @satisfies {readonly Mistake[]} */
export const mistakes = [
  {
    name: "a completion is taken from whoever sends it (no token check)",
    file: "core/transitions.ts",
    find: `if (record.token !== request.token || record.state === "released") {
    const by`,
    replace: `if (record.state === "released") {
    const by`,
    test: sqliteContract,
  },
  {
    name: "a release without its owner frees the key",
    file: "core/transitions.ts",
    find: `if (record === undefined || record.token !== request.token || record.state === "released") {`,
    replace: `if (record === undefined || record.state === "released") {`,
    test: sqliteContract,
  },
  {
    name: "a former holder renews the claim of its successor",
    file: "core/transitions.ts",
    find: `if (!mine) return { outcome: { kind: "replaced" }, record };
      return { outcome: { kind: "extended" }`,
    replace: `return { outcome: { kind: "extended" }`,
    test: sqliteContract,
  },
  {
    name: "one duration for lease and retention: a crash keeps the key for a day",
    file: "core/transitions.ts",
    find: "const remainingMs = record.leaseEndsAtMs - nowMs;",
    replace: "const remainingMs = record.expiresAtMs - nowMs;",
    test: "test/core/crashes.test.ts",
  },
  {
    name: "at-most-once runs again what lapsed",
    file: "core/transitions.ts",
    find: `if (record.onLapse === "hold" || request.onLapse === "hold") {`,
    replace: `if (request.maxAttempts === -1) {`,
    test: "test/core/crashes.test.ts",
  },
  {
    name: "the fingerprint is not compared",
    file: "core/transitions.ts",
    find: `if (comparison === "different") return`,
    replace: `if (request.maxAttempts === -1) return`,
    test: sqliteContract,
  },
  {
    name: "a claim asked again with its own token is told that it is in flight",
    file: "core/transitions.ts",
    find: `if (record.token === request.token) {
    // The answer`,
    replace: `if (request.maxAttempts === -1) {
    // The answer`,
    test: sqliteContract,
  },
  {
    name: "no heartbeat: work that outlasts its lease loses it",
    file: "core/lease.ts",
    find: "< beatMs) beatAfter(state, Math.min(beatMs, maxRunMs));",
    replace: "< Math.max(beatMs, maxRunMs)) return;",
    test: "test/core/leases.test.ts",
  },
  {
    name: "the deadline of a lease counts from the answer, not from when it was asked for",
    file: "core/lease.ts",
    find: `    case "extended":
      renewedAt(state, sentMs);`,
    replace: `    case "extended":
      renewedAt(state, clock.monotonicMs());`,
    test: "test/core/leases.test.ts",
  },
  {
    name: "a claim whose answer was lost is asked again with another token",
    file: "core/claiming.ts",
    find: "const second = started(() => promised(store.claim(request)));",
    replace:
      "const second = started(() => promised(store.claim({ ...request, token: `${request.token}2` as never })));",
    test: "test/core/outages-claims.test.ts",
  },
  {
    name: "a claim that was given up is not released: it stands for a lease that nobody works under",
    file: "core/claiming.ts",
    find: "    if (abandoned.has(request)) return;",
    replace: "    if (storeTimeoutMs >= 0) return;",
    test: "test/core/outages-claims.test.ts",
  },
  {
    name: "a completion that failed is forgotten",
    file: "core/settlement.ts",
    find: "const willRetry = completions.add({ attempt, forMs: policy.completionRetryMs, bytes, ended });",
    replace: "const willRetry = [attempt, bytes, ended].length === 0;",
    test: "test/core/outages-ends.test.ts",
  },
  {
    name: "a takeover writes without looking whether the record is still what it read",
    file: "stores/postgres/statements.ts",
    find: `AND held.revision = $\${COLUMNS.length + 1}::text::bigint
`,
    replace: `AND held.revision <> -($\${COLUMNS.length + 1}::text::bigint)
`,
    test: postgresContract,
  },
  {
    name: "Postgres: a purge that does not look at leases takes live claims",
    file: "stores/postgres/statements.ts",
    find: `\${later("r.lease_ends_at", "r.retention_ms")} <= (SELECT now FROM clock)
      LIMIT`,
    replace: `r.claimed_at <= (SELECT now FROM clock)
      LIMIT`,
    test: postgresContract,
  },
  {
    name: "Postgres: the clock of the app (ten minutes off) decides what has lapsed",
    file: "stores/postgres/statements.ts",
    find: `"clock AS MATERIALIZED (SELECT clock_timestamp() AS now)";`,
    replace:
      "`clock AS MATERIALIZED (SELECT clock_timestamp() + interval '1 ms' * ${new Date().getTime() - Math.round(performance.timeOrigin + performance.now())} AS now)`;",
    test: postgresFaults,
    only: "clock is off",
  },
  {
    name: "Postgres: `now()`, which stands still inside a transaction, instead of `clock_timestamp()`",
    file: "stores/postgres/statements.ts",
    find: `CLOCK = "clock AS MATERIALIZED (SELECT clock_timestamp() AS now)";`,
    replace: `CLOCK = "clock AS MATERIALIZED (SELECT now() AS now)";`,
    test: postgresFaults,
    only: "a long transaction",
  },
  {
    name: "Postgres: exactly-once work commits without asking whether its token still holds the key",
    file: "stores/postgres/statements.ts",
    find: `FROM clock WHERE r.key = $1 AND r.token = $2 AND \${OPEN_CLAIM} RETURNING r.key)`,
    replace: `FROM clock WHERE r.key = $1 AND $2 <> '' RETURNING r.key)`,
    test: postgresContract,
  },
  {
    name: "Postgres: nobody notices that the work's transaction had ended before its last statement",
    file: "stores/postgres/statements.ts",
    find: `const isMarked = "current_setting('oncekey.transaction', true) = $6::text";`,
    replace: `const isMarked = "$6::text IS NOT NULL";`,
    test: "test/servers/postgres/transactions.test.ts",
  },
  {
    name: "Postgres: a COMMIT whose connection died counts as refused, without looking",
    file: "stores/postgres/work.ts",
    find: "return lookUp(place, request);",
    replace: 'void lookUp;\n    return { kind: "refused", reason: messageOf(error) };',
    test: "test/servers/postgres/transactions.test.ts",
  },
  {
    name: "Redis: a completion that does not look at the token",
    file: "stores/redis/scripts.ts",
    find: `if not mine or state == 'R' then return 0 end
if state == 'D' then return 3 end`,
    replace: `if state == 'R' then return 0 end
if state == 'D' then return 3 end`,
    test: redisContract,
  },
  {
    name: "Redis: a release that does not look at the token",
    file: "stores/redis/scripts.ts",
    find: `if not mine or state == 'R' then return 0 end
if state == 'D' then return 2 end`,
    replace: `if state == 'R' then return 0 end
if state == 'D' then return 2 end`,
    test: redisContract,
  },
  {
    name: "Redis: a renewal keeps the record for its lease alone, so that a lapse forgets attempt and fingerprint",
    file: "stores/redis/scripts.ts",
    find: `'PX', tonumber(ARGV[2]) + tonumber(\${part("retentionMs")}))
return 1`,
    replace: `'PX', tonumber(ARGV[2]))
return 1`,
    test: redisContract,
  },
  ...jobMistakes,
  ...stepMistakes,
  ...consumerMistakes,
];
