/**
 * @module
 * The store on Postgres: the records of any number of processes on any number of hosts.
 *
 * Invariant: every call is one statement of its own transaction, or a compare-and-set around a transition of the core, on
 * connections of the store's own. Nothing here decides what a call means, and nothing is kept in this process.
 */

import { systemClock } from "../../core/clock.js";
import type { ResolveOutcome, Store, StoreTraits } from "../../core/store.js";
import { markUnknownRecord, reconcileRecord, resolveRecord } from "../../core/transitions.js";
import { createNotices } from "../notices.js";
import type { RemoteStore } from "../remote-store.js";
import { createServerClock } from "../server-clock.js";
import { startSweep } from "../sweep.js";
import type { CallerTransaction } from "./caller.js";
import { createChanges, LOCKED_FOR_MS, type Place, RowLocked, type Transition } from "./changes.js";
import { createClaims } from "./claims.js";
import { closedError, openConnections } from "./connections.js";
import type { PostgresDriver } from "./driver.js";
import { createEndings } from "./endings.js";
import { unavailable } from "./faults.js";
import { createHearing } from "./hearing.js";
import { joinTransaction } from "./join.js";
import { joinStatementsOf } from "./join-statements.js";
import { createLookups } from "./lookups.js";
import { type PostgresStoreOptions, type Settings, settingsOf } from "./options.js";
import { pinInTransaction } from "./pin.js";
import { tablesOf } from "./schema.js";
import { checkDatabase, migrate } from "./setup.js";
import { statementsOf } from "./statements.js";
import { beginSession } from "./transaction.js";
import { createWatchers } from "./watch.js";

/** A store on Postgres. */
export interface PostgresStore<Tx = unknown> extends RemoteStore<Tx, CallerTransaction> {
  /**
   * Creates and updates the tables, in one transaction; harmless if there is nothing to do, also in several processes at once. The
   * database user has to be allowed to. `postgresMigrations()` gives the same as text, for tools that apply migrations.
   */
  migrate(): Promise<void>;
}

/**
 * Records in a Postgres database, version 13 or later, with transactions for exactly-once work.
 *
 * The store opens connections of its own with the configuration of the client that it is given. Its tables have to be there:
 * `postgresMigrations()` prints what makes them, `migrate()` applies it. Every call is atomic and repeatable. One that is
 * rejected may have landed, save where its error says that nothing was changed.
 *
 * @example const store = postgresStore(fromPg(new Pool({ connectionString })));
 * @throws OncekeyError `CONFIGURATION_INVALID` if the driver is none or an option is out of bounds.
 */
export function postgresStore<Tx>(
  driver: PostgresDriver<Tx>,
  options: PostgresStoreOptions = {},
): PostgresStore<Tx> {
  const settings = settingsOf(driver, options);
  const tables = tablesOf(settings);
  const statements = statementsOf(tables);
  const joins = joinStatementsOf(tables);
  const clock = createServerClock();
  const notices = createNotices();
  const connections = openConnections(driver, settings, async (unchecked) => {
    await checkDatabase(unchecked, tables, clock);
    await hearing.start();
  });
  const { run } = connections;
  const watchers = createWatchers(statements, run, settings.listen !== undefined);
  const hearing = createHearing({ settings, tables, statements, run, watchers, notices });
  const means = { settings, statements, clock, run, ended: watchers.ended };
  const place: Place = { ...means, ...createChanges(means) };
  const claims = createClaims(place);
  const endings = createEndings(place);
  const lookups = createLookups(place, tables);
  const sweep = startSweep(systemClock, settings.sweepIntervalMs, lookups.purge);
  let closing: Promise<void> | undefined;
  const coded = codedWhile(() => closing === undefined);
  const applied = coded(async () => migrate(await connections.takeUnchecked(), tables));

  async function shutDown(): Promise<void> {
    sweep.stop();
    await Promise.all([claims.drained(), endings.drained()]);
    connections.stop();
    watchers.close();
    await hearing.close();
    await connections.close();
  }

  return {
    name: "postgres",
    traits: traitsOf(settings),
    warnings: warningsOf(settings),
    notices: notices.listen,
    claim: coded(claims.claim),
    extend: coded(endings.extend),
    complete: coded(endings.complete),
    release: coded(endings.release),
    ...verdictCalls(place, coded),
    status: coded(lookups.status),
    find: coded(lookups.find),
    list: coded(lookups.list),
    purge: coded(lookups.purge),
    discard: coded(lookups.discard),
    watch: watchers.watch,
    begin: (request) => beginSession({ ...place, driver, take: connections.takeForWork, endings }, request),
    join: (transaction) => joinTransaction(joins, transaction),
    pin: (transaction, request) => pinInTransaction(joins, transaction, request),
    migrate: () => applied(undefined),
    close() {
      closing ??= shutDown();
      return closing;
    },
  };
}

function traitsOf({ asynchronousStandby: failover }: Settings): StoreTraits {
  return {
    forgetsOn: { processCrash: false, powerLoss: false, failover, eviction: false },
    reach: "network",
  };
}

function warningsOf({ asynchronousStandby, listen }: Settings): readonly string[] {
  const warnings: string[] = [];
  if (asynchronousStandby) warnings.push(FORGETS_ON_FAILOVER);
  if (listen === undefined) warnings.push(DOES_NOT_LISTEN);
  return warnings;
}

const FORGETS_ON_FAILOVER =
  "asynchronousStandby is true: a standby that is promoted may lack the last claims and completions, and their work may run again";
const DOES_NOT_LISTEN =
  "The store does not listen, so waiters hear of what other processes complete by reading from time to time: with a pooler, give listen a driver that leads to the server itself";

type Verdicts = Pick<Store, "markUnknown" | "reconcile" | "resolve">;

/** The calls of people and reconcilers, and of work that cannot say how it ended. */
function verdictCalls({ change }: Place, coded: Coded): Verdicts {
  return {
    markUnknown: coded((request) =>
      change(request.key, (stored, nowMs) => markUnknownRecord(stored, request, nowMs), {
        lock: "FOR NO KEY UPDATE",
      }),
    ),
    reconcile: coded((request) =>
      change(request.key, (stored, nowMs) => reconcileRecord(stored, request, nowMs), { lock: "FOR UPDATE" }),
    ),
    resolve: coded(async (request) => {
      try {
        const transition: Transition<ResolveOutcome> = (stored, nowMs) =>
          resolveRecord(stored, request, nowMs);
        return await change(request.key, transition, { lock: "FOR UPDATE" });
      } catch (error) {
        // Its holder has pinned it in a transaction, or is ending it just now.
        if (error instanceof RowLocked) return { kind: "live", remainingMs: LOCKED_FOR_MS };
        throw error;
      }
    }),
  };
}

type Coded = <Request, Answer>(
  call: (request: Request) => Promise<Answer>,
) => (request: Request) => Promise<Answer>;

/** What a client throws becomes the coded error that the port promises; a store that is closed takes no more calls. */
function codedWhile(isOpen: () => boolean): Coded {
  return (call) => async (request) => {
    if (!isOpen()) throw closedError();
    try {
      return await call(request);
    } catch (error) {
      throw unavailable(error);
    }
  };
}
