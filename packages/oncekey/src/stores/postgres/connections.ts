/**
 * @module
 * Running statements on the store's own connections.
 *
 * Invariants: nothing is asked of a database that has not been checked; a check that failed is made again by the next call, so a
 * store recovers by itself once the cause is gone; a statement that gets no answer is given up together with its connection;
 * after `close` every call rejects.
 */
import { systemClock } from "../../core/clock.js";
import { OncekeyError } from "../../core/errors.js";
import type {
  PoolOptions,
  PostgresConnection,
  PostgresDriver,
  PostgresParam,
  PostgresPool,
  PostgresRow,
  PostgresStatement,
} from "./driver.js";
import { isConnectionUseless } from "./faults.js";
import type { Settings } from "./options.js";

/** Runs one statement in a transaction of its own. @throws what the client threw. */
export type RunStatement = (
  statement: PostgresStatement,
  params: readonly PostgresParam[],
) => Promise<readonly PostgresRow[]>;

export interface Connections<Tx> {
  /** Checks the database before the first statement. */
  readonly run: RunStatement;
  /** For the migration, which comes before any check. */
  takeUnchecked(): Promise<PostgresConnection<Tx>>;
  /** Checks the database, once. @throws OncekeyError `STORE_UNAVAILABLE` or `CONFIGURATION_INVALID` */
  ready(): Promise<void>;
  /** For transactions of work; to be given back. */
  takeForWork(): Promise<PostgresConnection<Tx>>;
  /** From now on every call rejects. */
  stop(): void;
  close(): Promise<void>;
}

/** Beyond the server's own deadline: it has had the time to say that it gave up. */
const ANSWER_MARGIN_MS = 500;

/** @param check asks the database whether it can be used. */
export function openConnections<Tx>(
  driver: PostgresDriver<Tx>,
  settings: Settings,
  check: (run: RunStatement) => Promise<void>,
): Connections<Tx> {
  const records = driver.open(optionsOf(settings, "records"));
  const work = driver.open(optionsOf(settings, "work"));
  const runUnchecked = bounded<Parameters<RunStatement>, readonly PostgresRow[]>((statement, params) =>
    runOn(records, statement, params, settings.timeoutMs + ANSWER_MARGIN_MS),
  );
  const take = bounded(() => work.take());
  let state: "new" | "ready" | "closed" = "new";
  let checking: Promise<void> | undefined;

  async function checkOnce(): Promise<void> {
    try {
      await check(runUnchecked);
      if (state === "new") state = "ready";
    } finally {
      checking = undefined;
    }
  }

  async function ready(): Promise<void> {
    if (state === "new") {
      checking ??= checkOnce();
      await checking;
    }
    if (state === "closed") throw closedError();
  }

  return {
    async takeUnchecked() {
      if (state === "closed") throw closedError();
      return take();
    },
    ready,
    run: (statement, params) =>
      state === "ready"
        ? runUnchecked(statement, params)
        : ready().then(() => runUnchecked(statement, params)),
    async takeForWork() {
      await ready();
      return take();
    },
    stop() {
      state = "closed";
    },
    async close() {
      await Promise.all([records.close(), work.close()]);
    },
  };
}

/** Under way at a time. Batches need a handful; more than this wait in vain. */
const MAX_UNDER_WAY = 5_000;

function bounded<Params extends readonly unknown[], Answer>(
  call: (...params: Params) => Promise<Answer>,
): (...params: Params) => Promise<Answer> {
  let underWay = 0;
  return async (...params) => {
    if (underWay >= MAX_UNDER_WAY) throw overflow();
    underWay += 1;
    try {
      return await call(...params);
    } finally {
      underWay -= 1;
    }
  };
}

function overflow(): OncekeyError<"STORE_UNAVAILABLE"> {
  const message = `More than ${MAX_UNDER_WAY} calls wait for a connection. Nothing was changed; try again.`;
  return new OncekeyError("STORE_UNAVAILABLE", message, { retryAfterMs: 1_000 });
}

async function runOn<Tx>(
  pool: PostgresPool<Tx>,
  statement: PostgresStatement,
  params: readonly PostgresParam[],
  giveUpMs: number,
): Promise<readonly PostgresRow[]> {
  const connection = await pool.take();
  const alarm = systemClock.setTimer(connection.destroy, giveUpMs);
  try {
    const rows = await connection.query(statement, params);
    connection.free();
    return rows;
  } catch (error) {
    if (isConnectionUseless(error)) connection.destroy();
    else connection.free();
    throw error;
  } finally {
    alarm.cancel();
  }
}

/** What the connections of one purpose start with. */
export function optionsOf(settings: Settings, purpose: "records" | "work" | "listen"): PoolOptions {
  const { timeoutMs, pooler } = settings;
  const max = { records: settings.connections, work: settings.transactions, listen: 1 }[purpose];
  return {
    applicationName: `oncekey ${purpose}`,
    max,
    connectMs: timeoutMs,
    settings: pooler || purpose !== "records" ? {} : settingsOfRecords(timeoutMs),
    prepares: !pooler,
  };
}

function settingsOfRecords(timeoutMs: number): Readonly<Record<string, string>> {
  return {
    statement_timeout: String(timeoutMs),
    lock_timeout: String(timeoutMs),
    idle_in_transaction_session_timeout: String(timeoutMs),
    // Each statement is atomic by its conditions; a stricter level would only refuse some of them.
    default_transaction_isolation: "read committed",
    // A prepared statement keeps the plan that it was given while the table was small, when a scan looked cheap.
    enable_seqscan: "off",
    plan_cache_mode: "force_generic_plan",
    jit: "off",
  };
}

export function closedError(): OncekeyError<"STORE_UNAVAILABLE"> {
  return new OncekeyError("STORE_UNAVAILABLE", "The store has been closed; nothing was changed.");
}
