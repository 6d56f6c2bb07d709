/**
 * @module
 * A database in memory that holds records beside rows, and whose transactions can be joined: what the core's tests need of one.
 *
 * A transaction works on a copy of everything and puts it in the place of the original when it commits; a savepoint is a copy
 * of that copy. Nobody waits for anybody, so what real databases do about conflicts is left to the tests with servers.
 */
import { OncekeyError } from "../../src/core/errors.js";
import type { IdempotencyEvent } from "../../src/core/events.js";
import { createIdempotency } from "../../src/core/idempotency.js";
import type { Policy } from "../../src/core/policy.js";
import type { RecordKey, StoredRecord } from "../../src/core/record.js";
import type { ClaimRequest, Store } from "../../src/core/store.js";
import { type Change, claimRecord, completeRecord } from "../../src/core/transitions.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.js";

interface Contents {
  readonly records: Map<RecordKey, StoredRecord>;
  readonly rows: string[];
}

/** What an application holds: it writes rows, and ends it. */
interface FakeTransaction {
  contents: Contents;
  insert(row: string): void;
  commit(): void;
  /** As a database does that has chosen it as the victim of a deadlock. */
  kill(): void;
}

export interface FakeDatabase {
  readonly clock: ManualClock;
  readonly store: Store<unknown, FakeTransaction>;
  begin(): FakeTransaction;
  /** What is committed. */
  rows(): readonly string[];
  /** The claims that were asked for through transactions, call by call. */
  readonly claims: (readonly ClaimRequest[])[];
  readonly savepoints: { open: number };
}

const copyOf = ({ records, rows }: Contents): Contents => ({ records: new Map(records), rows: [...rows] });

export function fakeDatabase(): FakeDatabase {
  const clock = manualClock();
  const base = memoryStore({ clock, sweepIntervalMs: 0 });
  let committed: Contents = { records: new Map(), rows: [] };
  const claims: (readonly ClaimRequest[])[] = [];
  const savepoints = { open: 0 };
  const dead = new WeakSet<FakeTransaction>();

  function change<T>(
    contents: Contents,
    key: RecordKey,
    of: (was: StoredRecord | undefined) => Change<T>,
  ): T {
    const { outcome, record } = of(contents.records.get(key));
    if (record === undefined) contents.records.delete(key);
    else contents.records.set(key, record);
    return outcome;
  }

  function alive(tx: FakeTransaction): void {
    if (dead.has(tx)) throw new OncekeyError("TRANSACTION_ABORTED", "The database has ended it.");
  }

  const join: NonNullable<Store<unknown, FakeTransaction>["join"]> = (tx) => ({
    handle: tx,
    async savepoint() {
      alive(tx);
      const before = copyOf(tx.contents);
      savepoints.open += 1;
      const around = savepoints.open - 1;
      return {
        async release() {
          alive(tx);
          savepoints.open = around;
        },
        async rollback() {
          alive(tx);
          savepoints.open = around;
          tx.contents = before;
        },
      };
    },
    async claim(requests) {
      alive(tx);
      claims.push(requests);
      return requests.map((request) =>
        change(tx.contents, request.key, (was) => claimRecord(was, request, clock.now())),
      );
    },
    async complete(requests) {
      alive(tx);
      for (const request of requests) {
        change(tx.contents, request.key, (was) => completeRecord(was, request, clock.now()));
      }
    },
  });

  return {
    clock,
    claims,
    savepoints,
    rows: () => committed.rows,
    store: {
      ...base,
      claim: async (request) =>
        change(committed, request.key, (was) => claimRecord(was, request, clock.now())),
      complete: async (request) =>
        change(committed, request.key, (was) => completeRecord(was, request, clock.now())),
      begin: () => {
        throw new Error("Nobody asked for a transaction of its own");
      },
      join,
      pin: async (tx, { key, token }) => {
        const record = tx.contents.records.get(key);
        return { kind: record?.state === "claimed" && record.token === token ? "pinned" : "not-held" };
      },
    },
    begin() {
      const tx: FakeTransaction = {
        contents: copyOf(committed),
        insert: (row) => void tx.contents.rows.push(row),
        commit: () => {
          committed = tx.contents;
        },
        kill: () => void dead.add(tx),
      };
      return tx;
    },
  };
}

/** An instance on it, and every event that it emits. */
export function opened(policy: Policy = {}, database: FakeDatabase = fakeDatabase()) {
  const events: IdempotencyEvent[] = [];
  const { store, clock } = database;
  const onEvent = (event: IdempotencyEvent) => void events.push(event);
  const idempotency = createIdempotency({ store, clock, scope: "global", onEvent, ...policy });
  const types = () => events.map(({ type }) => type);
  return { database, idempotency, events, types };
}

export const call = (key = "k", input: unknown = 1) => ({ operation: "op", key, input });
