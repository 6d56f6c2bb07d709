/**
 * @module
 * The store on SQLite: one file, any number of processes of one host on it.
 *
 * Invariant: each call is one read, or one write transaction around a transition of the core, so the file is
 * always the truth and this process keeps no copy of it. Nothing here decides what a call means.
 */
import type { StoredOutcome } from "../../core/record.js";
import type { KeyStatus, Store, StoreTraits } from "../../core/store.js";
import {
  claimRecord,
  completeRecord,
  currentRecord,
  extendRecord,
  markUnknownRecord,
  reconcileRecord,
  releaseRecord,
  resolveRecord,
} from "../../core/transitions.js";
import type { RemoteStore } from "../remote-store.js";
import { startSweep } from "../sweep.js";
import type { Entry } from "./batch.js";
import { enqueueDiscard, enqueuePurge, enqueueTransition, type TransitionCall } from "./calls.js";
import { type Moment, watchClocks } from "./clocks.js";
import type { SqliteDriver } from "./driver.js";
import { type DatabaseFile, openFile } from "./file.js";
import { infoOf, listRecords } from "./list.js";
import { type SqliteStoreOptions, settingsOf } from "./options.js";
import { nextTurn } from "./pace.js";
import { createWriteQueue } from "./queue.js";
import { tablesOf } from "./schema.js";
import { openConnections } from "./setup.js";
import { MAX_STATUS, prepareRecords, type Records } from "./statements.js";
import { beginSession, type SqliteTransaction } from "./transaction.js";
import { createTurns } from "./turns.js";
import { createWatchers } from "./watch.js";
import type { OpenTransaction, WorkPlace } from "./work.js";

/**
 * Records in a SQLite file, with transactions for exactly-once work.
 *
 * The store opens its own two connections and creates its tables (`oncekey_records`, `oncekey_migrations`)
 * in the file. Several processes of one host may use one file; a network file system will not do. Every call
 * is atomic and repeatable. One that is rejected has changed nothing, save that after an I/O error while
 * committing it may have: repeating it tells.
 *
 * @example const store = sqliteStore(fromLibsql(() => new Database("orders.db")));
 * @throws OncekeyError `CONFIGURATION_INVALID` if the driver is none, opens one connection twice, opens a
 * database in memory, or if an option is out of bounds.
 */
export function sqliteStore(
  driver: SqliteDriver,
  options: SqliteStoreOptions = {},
): Store<SqliteTransaction> {
  const settings = settingsOf(driver, options);
  const { busyWaitMs: waitMs, clock, synchronous } = settings;
  const tables = tablesOf(settings.tablePrefix);
  const connections = openConnections(driver);
  const file = openFile(connections, tables, settings);
  const moment = watchClocks(clock);
  const records = prepareRecords(connections.records, tables);
  let open: OpenTransaction | undefined;
  let closing: Promise<void> | undefined;

  const queue = createWriteQueue({
    connection: connections.records,
    records,
    moment,
    waitMs,
    heldByOurselves: () => open !== undefined,
  });
  const watchers = createWatchers({
    dataVersion: () => records.dataVersion(),
    status: (keys) => records.status(keys, moment()),
  });
  const submit = (entry: Entry): void => {
    if (file.isReady()) queue.submit(entry);
    else file.ready().then(() => queue.submit(entry), entry.fail);
  };
  const calls = recordCalls((call) => enqueueTransition(submit, waitMs, call, watchers.changed));
  const purge = (limit: number): Promise<number> =>
    inSlices(limit, (slice) => enqueuePurge(submit, waitMs, slice));
  const sweep = startSweep(clock, settings.sweepIntervalMs, purge);
  const place: WorkPlace = {
    connection: connections.work,
    records: prepareRecords(connections.work, tables),
    clock,
    moment,
    turns: createTurns(),
    waitMs,
    ready: file.ready,
    complete: calls.complete,
    isCompletedBy({ key, token }) {
      const record = records.read(key, moment());
      return record?.state === "completed" && record.token === token;
    },
    opened: (transaction) => {
      open = transaction;
    },
    ended(transaction) {
      open = undefined;
      // Before the next transaction takes the file: heartbeats and claims have waited for this one.
      queue.writeNow();
      watchers.changed(transaction.request.key);
    },
  };

  async function shutDown(): Promise<void> {
    sweep.stop();
    await file.stop();
    open?.abort("the store is being closed");
    await queue.drained();
    watchers.close();
    file.close();
  }

  return {
    name: "sqlite",
    traits: traitsOf(synchronous),
    warnings: synchronous === "full" ? [] : [FORGETS_ON_POWER_LOSS],
    ...calls,
    ...lookups(file, records, moment),
    list: (request) =>
      listRecords({ connection: connections.records, tables, moment, read: file.read }, request),
    purge,
    discard: (key) => enqueueDiscard(submit, waitMs, key),
    watch: watchers.watch,
    begin: (request) => beginSession(place, request),
    close() {
      closing ??= shutDown();
      return closing;
    },
  };
}

function traitsOf(synchronous: "full" | "normal"): StoreTraits {
  const powerLoss = synchronous !== "full";
  return { forgetsOn: { processCrash: false, powerLoss, failover: false, eviction: false }, reach: "host" };
}

const FORGETS_ON_POWER_LOSS =
  'synchronous is "normal": a power cut can take the last claims and completions with it, and their work may run again';

/** Removed in one transaction. */
const PURGE_SLICE = 100;

type Change = <Outcome>(call: TransitionCall<Outcome>) => Promise<Outcome>;
type RecordCalls = Pick<
  RemoteStore,
  "claim" | "extend" | "complete" | "release" | "markUnknown" | "reconcile" | "resolve"
>;

/** Every call of the port that changes a record: which transition it is, and what it brings along. */
function recordCalls(change: Change): RecordCalls {
  const small = { bytes: 0, readsFirst: false } as const;
  return {
    claim: (request) =>
      change({
        key: request.key,
        transition: (was, nowMs) => claimRecord(was, request, nowMs),
        bytes: 0,
        readsFirst: true,
      }),
    extend: (request) =>
      change({ key: request.key, transition: (was, nowMs) => extendRecord(was, request, nowMs), ...small }),
    complete: (request) =>
      change({
        key: request.key,
        transition: (was, nowMs) => completeRecord(was, request, nowMs),
        bytes: bytesOf(request.outcome),
        readsFirst: false,
      }),
    release: (request) =>
      change({ key: request.key, transition: (was, nowMs) => releaseRecord(was, request, nowMs), ...small }),
    markUnknown: (request) =>
      change({
        key: request.key,
        transition: (was, nowMs) => markUnknownRecord(was, request, nowMs),
        ...small,
      }),
    reconcile: (request) =>
      change({
        key: request.key,
        transition: (was, nowMs) => reconcileRecord(was, request, nowMs),
        ...small,
      }),
    resolve: (request) =>
      change({
        key: request.key,
        transition: (was, nowMs) => resolveRecord(was, request, nowMs),
        bytes: request.verdict.kind === "completed" ? bytesOf(request.verdict.outcome) : 0,
        readsFirst: false,
      }),
  };
}

function lookups(file: DatabaseFile, records: Records, moment: () => Moment): Pick<Store, "status" | "find"> {
  return {
    async status(keys) {
      const states: KeyStatus[] = [];
      for (let from = 0; from < keys.length; from += MAX_STATUS) {
        if (from > 0) await nextTurn();
        const some = keys.slice(from, from + MAX_STATUS);
        states.push(...(await file.read(() => records.status(some, moment()))));
      }
      return states;
    },
    async find(key) {
      const now = moment();
      const glance = await file.read(() => records.glance(key, now));
      const current = currentRecord(glance?.record, now.nowMs);
      return glance === undefined || current === undefined ? undefined : infoOf(glance, now.nowMs);
    },
  };
}

/** Small transactions, so that nobody waits long behind them. */
async function inSlices(limit: number, purge: (slice: number) => Promise<number>): Promise<number> {
  let removed = 0;
  while (removed < limit) {
    const slice = Math.min(PURGE_SLICE, limit - removed);
    const now = await purge(slice);
    removed += now;
    if (now < slice) break;
  }
  return removed;
}

function bytesOf({ head, body }: StoredOutcome): number {
  return head.length + (body?.byteLength ?? 0);
}
