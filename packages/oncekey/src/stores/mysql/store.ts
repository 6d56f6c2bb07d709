/**
 * @module
 * The store on MySQL and MariaDB: one table, any number of processes on any number of hosts.
 *
 * Invariant: the server decides what time it is and who has won; this process keeps no copy of a record. Nothing here
 * decides what a call means.
 */
import { systemClock } from "../../core/clock.js";
import type { StoreTraits } from "../../core/store.js";
import { createNotices } from "../notices.js";
import type { RemoteStore } from "../remote-store.js";
import { startSweep } from "../sweep.js";
import type { MysqlCallerTransaction } from "./caller.js";
import { createCalls } from "./calls.js";
import { closing as closedError, createConnections } from "./connections.js";
import { openDatabase } from "./database.js";
import { faultOf, type MysqlDriver, unavailable } from "./driver.js";
import { joinTransaction } from "./join.js";
import { listRecords } from "./list.js";
import { discardRecord, findRecord, purgeRecords, statusOfAll } from "./lookups.js";
import { type MysqlStoreOptions, type Settings, settingsOf } from "./options.js";
import { pinInTransaction } from "./pin.js";
import { createRecords, heldTooLong } from "./records.js";
import { tablesOf } from "./schema.js";
import { beginSession, type MysqlTransaction } from "./transaction.js";
import { createWatchers } from "./watch.js";
import { type OpenTransaction, prepareWork, type WorkPlace } from "./work.js";

/** A store on MySQL or MariaDB. */
export interface MysqlStore extends RemoteStore<MysqlTransaction, MysqlCallerTransaction> {
  /**
   * Creates and updates the tables; harmless if there is nothing to do, also in several processes at once. The database user
   * has to be allowed to. `mysqlMigrations()` gives the same as text, for tools that apply migrations.
   */
  migrate(): Promise<void>;
}

/**
 * Records in a database of MySQL 8.0.1 or MariaDB 10.6, or later, with transactions for exactly-once work.
 *
 * The store opens connections of its own with the configuration of the pool that it is given. Its tables have to be there:
 * `mysqlMigrations()` prints what makes them, `migrate()` applies it. Every call is atomic and repeatable. One that is rejected
 * may have landed, save where its error says that nothing was changed.
 *
 * @example const store = mysqlStore(fromMysql2(mysql.createPool("mysql://app@db/orders")));
 * @throws OncekeyError `CONFIGURATION_INVALID` if the driver is none or an option is out of bounds.
 */
export function mysqlStore(driver: MysqlDriver, options: MysqlStoreOptions = {}): MysqlStore {
  const settings = settingsOf(driver, options);
  const { timeoutMs } = settings;
  const notices = createNotices();
  const database = openDatabase({
    source: driver.records(),
    tables: tablesOf(settings.tablePrefix),
    most: settings.connections,
    timeoutMs,
    found({ weaknesses }) {
      for (const text of weaknesses) notices.tell({ kind: "warning", text });
    },
  });
  const records = createRecords(database, timeoutMs);
  const watchers = createWatchers((keys) => statusOfAll(records, keys));
  const calls = createCalls({ database, records, timeoutMs, ended: watchers.changed });
  const open = new Set<OpenTransaction>();
  const place: WorkPlace = {
    database,
    connections: createConnections({
      source: driver.work(),
      most: settings.transactions,
      prepare: (session) => prepareWork(session, settings.isolation, timeoutMs),
    }),
    clock: systemClock,
    waitMs: timeoutMs,
    complete: calls.complete,
    opened: (transaction) => open.add(transaction),
    ended(transaction) {
      open.delete(transaction);
      watchers.changed(transaction.request.key);
    },
  };
  const purge = (limit: number) => purgeRecords(database, limit);
  const sweep = startSweep(systemClock, settings.sweepIntervalMs, purge);
  let closing: Promise<void> | undefined;
  const coded = codedUnless(() => closing !== undefined);

  async function shutDown(): Promise<void> {
    sweep.stop();
    watchers.close();
    for (const transaction of open) transaction.abort("the store is being closed");
    await calls.drained();
    await place.connections.close();
    await database.close();
  }

  return {
    name: "mysql",
    traits: traitsOf(settings),
    warnings: settings.asynchronousReplica ? [FORGETS_ON_FAILOVER] : [],
    notices: notices.listen,
    claim: coded(calls.claim),
    extend: coded(calls.extend),
    complete: coded(calls.complete),
    release: coded(calls.release),
    markUnknown: coded(calls.markUnknown),
    reconcile: coded(calls.reconcile),
    resolve: coded(calls.resolve),
    status: coded((keys) => statusOfAll(records, keys)),
    find: coded((key) => findRecord(records, key)),
    list: coded((request) => listRecords(database, request)),
    purge: coded(purge),
    discard: coded((key) => discardRecord(database, key)),
    watch: watchers.watch,
    begin(request) {
      if (closing !== undefined) throw closedError();
      return beginSession(place, request);
    },
    join: (transaction) => joinTransaction(database, transaction),
    pin: (transaction, request) =>
      coded(() => pinInTransaction(database, records, transaction, request))(undefined),
    migrate: () => coded(() => database.migrate())(undefined),
    close() {
      closing ??= shutDown();
      return closing;
    },
  };
}

function traitsOf({ asynchronousReplica: failover }: Settings): StoreTraits {
  return {
    forgetsOn: { processCrash: false, powerLoss: false, failover, eviction: false },
    reach: "network",
  };
}

const FORGETS_ON_FAILOVER =
  "asynchronousReplica is true: a replica that is promoted may lack the last claims and completions, and their work may run again";

/** Every error of the client or the server leaves as one with a code. */
function codedUnless(isClosed: () => boolean) {
  return <Request, Outcome>(call: (request: Request) => Promise<Outcome>) =>
    async (request: Request): Promise<Outcome> => {
      if (isClosed()) throw closedError();
      try {
        return await call(request);
      } catch (error) {
        throw faultOf(error) === "held" ? heldTooLong(error) : unavailable(error);
      }
    };
}
