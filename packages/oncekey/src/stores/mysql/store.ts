/**
 * @module
 * The store on MySQL and MariaDB: one table, any number of processes on any number of hosts.
 *
 * Invariant: the server decides what time it is and who has won; this process keeps no copy of a record. The calls of every
 * request are one round trip, shared by all that are made in the same turn of the event loop; for what is rare, the
 * transitions of the core decide here and are written back by compare-and-set.
 */
import type { RecordKey, StoredRecord } from "../../core/record.js";
import type { Store } from "../../core/store.js";
import {
  type Change,
  completeRecord,
  extendRecord,
  markUnknownRecord,
  reconcileRecord,
  releaseRecord,
  resolveRecord,
} from "../../core/transitions.js";
import { createBatches } from "../batches.js";
import { changeRemotely } from "../compare-and-set.js";
import { startSweep } from "../sweep.js";
import { completeBatches, extendBatches, releaseBatches } from "./changes.js";
import { claimBatches, claimOutcome } from "./claims.js";
import { openDatabase } from "./database.js";
import { faultOf, type MysqlDriver, unavailable } from "./driver.js";
import { listRecords } from "./list.js";
import { findRecord, purgeRecords, statusOfAll } from "./lookups.js";
import { type MysqlStoreOptions, settingsOf } from "./options.js";
import { createRecords, heldTooLong } from "./records.js";
import { tablesOf } from "./schema.js";
import { createWatchers } from "./watch.js";

export interface MysqlStore extends Store<never> {
  migrate(): Promise<void>;
}

export function mysqlStore(driver: MysqlDriver, options: MysqlStoreOptions = {}): MysqlStore {
  const settings = settingsOf(driver, options);
  const { statementMs, maxConnections, clock } = settings;
  const tables = tablesOf(settings.tablePrefix);
  const database = openDatabase({ source: driver.records(), tables, maxConnections, statementMs });
  const records = createRecords(database);
  const claims = createBatches(claimBatches(database), statementMs);
  const completions = createBatches(completeBatches(database), statementMs);
  const extensions = createBatches(extendBatches(database), statementMs);
  const releases = createBatches(releaseBatches(database), statementMs);
  const watchers = createWatchers((keys) => statusOfAll(records, keys));
  const purge = (limit: number) => coded(() => purgeRecords(database, limit));
  const sweep = startSweep(clock, settings.sweepIntervalMs, purge);
  let closing: Promise<void> | undefined;

  /** By the transitions of the core: read, decided here, written back. */
  async function change<Outcome>(
    key: RecordKey,
    transition: (record: StoredRecord | undefined, nowMs: number) => Change<Outcome>,
    patienceMs = statementMs,
  ): Promise<Outcome> {
    const { outcome, record, written } = await changeRemotely(records.patient(patienceMs), key, transition);
    if (written && record?.state !== "claimed") watchers.changed(key);
    return outcome;
  }

  return {
    name: "mysql",
    traits: {
      forgetsOn: {
        processCrash: false,
        powerLoss: false,
        failover: settings.losesOnFailover,
        eviction: false,
      },
      reach: "network",
    },
    claim: (request) => coded(async () => claimOutcome(records, request, await claims.submit(request))),
    extend: (request) =>
      coded(async () => {
        const done = await extensions.submit(request).catch((error: unknown) => {
          if (faultOf(error) === "held") return false;
          throw error;
        });
        if (done) return { kind: "extended" };
        return change(request.key, (stored, nowMs) => extendRecord(stored, request, nowMs), 150).catch(
          (error) => {
            if (faultOf(error) === "held") return { kind: "extended" } as const;
            throw error;
          },
        );
      }),
    complete: (request) =>
      coded(async () => {
        if (await completions.submit(request)) {
          watchers.changed(request.key);
          return { kind: "completed", how: "stored" };
        }
        return change(request.key, (stored, nowMs) => completeRecord(stored, request, nowMs));
      }),
    release: (request) =>
      coded(async () => {
        if (await releases.submit(request)) {
          watchers.changed(request.key);
          return { kind: "released" };
        }
        return change(request.key, (stored, nowMs) => releaseRecord(stored, request, nowMs));
      }),
    markUnknown: (request) =>
      coded(() => change(request.key, (stored, nowMs) => markUnknownRecord(stored, request, nowMs))),
    reconcile: (request) =>
      coded(() => change(request.key, (stored, nowMs) => reconcileRecord(stored, request, nowMs))),
    resolve: (request) =>
      coded(() => change(request.key, (stored, nowMs) => resolveRecord(stored, request, nowMs))),
    status: (keys) => coded(() => statusOfAll(records, keys)),
    watch: watchers.watch,
    find: (key) => coded(() => findRecord(records, key)),
    list: (request) => coded(() => listRecords(database, request)),
    purge,
    migrate: () => coded(database.migrate),
    close() {
      closing ??= (async () => {
        sweep.stop();
        watchers.close();
        await Promise.all([claims, completions, extensions, releases].map((batches) => batches.drained()));
        await database.close();
      })();
      return closing;
    },
  };
}

async function coded<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw faultOf(error) === "held" ? heldTooLong(error) : unavailable(error);
  }
}
