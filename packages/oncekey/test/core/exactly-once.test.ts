import { describe, expect, it } from "vitest";
import { OncekeyError } from "../../src/core/errors.js";
import type { Policy } from "../../src/core/policy.js";
import type { StoredOutcome } from "../../src/core/record.js";
import type { CommitOutcome, Store, TransactionRequest, TransactionSession } from "../../src/core/store.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { codeOf, declined, deferred, keyOf, leftovers, startProcess, wire } from "./processes.js";

/** Rows of a memory database: written in a transaction, there after its commit. */
interface Rows {
  insert(row: string): void;
}

type Commit = (really: () => Promise<CommitOutcome>, what: "everything" | "record") => Promise<CommitOutcome>;

/** A memory store with transactions over a list of rows. `commit` may do something else than commit. */
function database(policy: Policy = {}, commit: Commit = (really) => really()) {
  const clock = manualClock();
  const line = wire(memoryStore({ clock, sweepIntervalMs: 0 }));
  const committed: string[] = [];
  const ended: string[] = [];
  const begin = (request: TransactionRequest): TransactionSession<Rows> => {
    const rows: string[] = [];
    return {
      handle: { insert: (row) => void rows.push(row) },
      used: () => rows.length > 0,
      async commit(outcome: StoredOutcome, what) {
        const really = async (): Promise<CommitOutcome> => {
          const answer = await line.store.complete({ ...request, outcome });
          if (answer.kind === "replaced") return answer;
          if (what === "everything") committed.push(...rows);
          return { kind: "committed" };
        };
        const answer = await commit(really, what);
        ended.push(answer.kind);
        return answer;
      },
      rollback: () => {
        ended.push("rolled back");
        return Promise.resolve();
      },
    };
  };
  const store: Store<Rows> = { ...line.store, begin };
  const process = startProcess({ store, clock, policy: { guarantee: "exactly-once", ...policy } });
  /** Inserts `row` and returns it. */
  const insert = (row: string) => (work: { readonly transaction: unknown }) => {
    (work.transaction as Rows).insert(row);
    return row;
  };
  return { clock, line, store, process, committed, ended, insert };
}

describe("exactly-once", () => {
  it("commits rows and completion together, and repeats replay", async () => {
    const { process, committed, insert } = database();
    expect(await process.run({}, insert("a"))).toEqual({ kind: "executed", result: "a", attempt: 1 });
    expect(await process.run({}, insert("b"))).toMatchObject({ kind: "replayed", result: "a" });
    expect(committed).toEqual(["a"]);
    expect(process.of("completed")).toHaveLength(1);
    expect(process.of("transaction-unused")).toEqual([]);
  });

  it("a throw rolls back and frees the key", async () => {
    const { process, committed, ended, insert, line } = database();
    const failing = (work: { readonly transaction: unknown }) => {
      insert("a")(work);
      throw declined;
    };
    expect(await codeOf(process.run({}, failing))).toBe(declined);
    expect([committed, ended]).toEqual([[], ["rolled back"]]);
    expect(await line.store.find(keyOf())).toBeUndefined();
    expect(await process.run({}, insert("b"))).toMatchObject({ kind: "executed" });
  });

  it("a kept throw keeps the record alone: its rows go", async () => {
    const { process, committed, insert } = database({ keep: () => true });
    const failing = (work: { readonly transaction: unknown }) => {
      insert("a")(work);
      throw declined;
    };
    expect(await codeOf(process.run({}, failing))).toBe(declined);
    expect(await codeOf(process.run({}, insert("b")))).toMatchObject({ message: "declined", replayed: true });
    expect(committed).toEqual([]);
  });

  it("says when nothing was written through it, and when a body was not kept", async () => {
    const { process } = database({ maxResultBytes: 1 });
    await process.run({}, () => "longer");
    expect(process.of("transaction-unused")).toHaveLength(1);
    expect(process.of("result-not-kept")).toHaveLength(1);
  });

  it("a refused commit is repeated up to twice, with nothing left of the attempts before", async () => {
    let refusals = 2;
    const { process, committed, insert } = database({}, (really) =>
      refusals-- > 0 ? Promise.resolve({ kind: "refused", reason: "40001" }) : really(),
    );
    expect(await process.run({}, insert("a"))).toMatchObject({ kind: "executed", result: "a" });
    expect(committed).toEqual(["a"]);
    expect(process.of("not-committed").map(({ willRepeat }) => willRepeat)).toEqual([true, true]);
  });

  it("a commit that is always refused did nothing: the key is free, NOT_COMMITTED", async () => {
    const { process, committed, insert, line } = database({}, () =>
      Promise.resolve({ kind: "refused", reason: "40P01" }),
    );
    const error = await process.run({}, insert("a")).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "NOT_COMMITTED", status: 503, retryAfterMs: 1_000 });
    expect(process.of("not-committed")).toHaveLength(3);
    expect([committed, await line.store.find(keyOf())]).toEqual([[], undefined]);
    expect(leftovers(process)).toEqual({ here: 0, waiting: 0 });
  });

  it("a commit that landed although its answer was lost is a success", async () => {
    const { process, committed, insert } = database({}, async (really) => {
      await really();
      throw new Error("connection reset");
    });
    expect(await process.run({}, insert("a"))).toMatchObject({ kind: "executed", result: "a" });
    expect(committed).toEqual(["a"]);
  });

  it("a commit that nobody can decide releases nothing, and a repeat finds what happened", async () => {
    const way = deferred<CommitOutcome>();
    const { process, committed, insert, line, clock } = database({}, () => way.promise);
    const call = process.run({}, insert("a")).catch((thrown: unknown) => thrown);
    await clock.advance(2_000);
    expect(await call).toMatchObject({ code: "COMMIT_UNDECIDED", status: 503, businessCode: 50_315 });
    expect(line.count("release")).toBe(0);
    const repeat = codeOf(process.run({ onInFlight: "reject" }, insert("b")));
    await clock.settle();
    expect(await repeat).toBe("IN_FLIGHT");
    expect(process.of("finished")[0]).toMatchObject({ outcome: "outcome_unknown" });
    expect([committed, leftovers(process)]).toEqual([[], { here: 0, waiting: 0 }]);
  });

  it("a commit without an answer is decided by the record, where that shows that it cannot land any more", async () => {
    for (const taken of ["taken over", "released"]) {
      const { process, committed, insert, store, clock, line } = database({}, async () => {
        const key = keyOf();
        const { version = "" as never } = (await store.find(key)) ?? {};
        const token = "another" as never;
        const verdict =
          taken === "released"
            ? ({ kind: "not-performed" } as const)
            : ({ kind: "restart", leaseMs: 30_000, maxAttempts: undefined } as const);
        await line.store.resolve({ key, version, token, verdict, evenIfLive: true });
        throw new Error("connection reset");
      });
      expect(await codeOf(process.run({}, insert("a")))).toBe("NOT_COMMITTED");
      expect([committed, leftovers(process)]).toEqual([[], { here: 0, waiting: 0 }]);
      await clock.settle();
    }
  });

  it("a commit that finds the record unreadable says so, and releases nothing", async () => {
    const { process, insert, line } = database({}, () =>
      Promise.reject(new OncekeyError("RECORD_UNREADABLE", "damaged")),
    );
    expect(await codeOf(process.run({}, insert("a")))).toBe("RECORD_UNREADABLE");
    expect([line.count("release"), leftovers(process)]).toEqual([0, { here: 0, waiting: 0 }]);
  });

  it("a former holder commits nothing: it gets the other's result, or learns that nothing was kept", async () => {
    for (const otherEnds of [true, false]) {
      const { process, committed, insert, store, clock, line } = database();
      const end = deferred();
      const stuck = codeOf(
        process.run({}, async (work) => {
          await end.promise;
          return insert("first")(work);
        }),
      );
      await clock.settle();
      line.on("extend", () => new Promise(() => undefined));
      await clock.advance(30_000);
      line.on("extend", undefined);
      const other = startProcess({ store, clock, policy: { guarantee: "exactly-once" } });
      const otherEnd = deferred();
      const second = other.run({}, async (work) => {
        await otherEnd.promise;
        return insert("second")(work);
      });
      await clock.settle();
      if (otherEnds) otherEnd.resolve();
      await clock.settle();
      end.resolve();
      await clock.settle();
      if (otherEnds) expect(await stuck).toMatchObject({ kind: "replayed", result: "second" });
      else expect(await stuck).toBe("NOT_COMMITTED");
      otherEnd.resolve();
      expect(await second).toMatchObject({ kind: "executed" });
      expect(committed).toEqual(["second"]);
    }
  });

  it("repeats of a running key wait without a transaction, and get its result", async () => {
    const { process, committed, ended, insert, clock } = database();
    const end = deferred();
    const calls = Array.from({ length: 10 }, () =>
      process.run({}, async (work) => {
        await end.promise;
        return insert("a")(work);
      }),
    );
    await clock.advance(1_000);
    end.resolve();
    await clock.settle();
    expect((await Promise.all(calls)).map(({ result }) => result)).toEqual(Array(10).fill("a"));
    expect([committed, ended]).toEqual([["a"], ["committed"]]);
  });

  it("a rollback that hangs or fails keeps neither the error nor the key back", async () => {
    for (const rollback of [
      () => Promise.reject(new Error("gone")),
      () => new Promise<void>(() => undefined),
    ]) {
      const { store, clock, line } = database();
      const broken: Store<Rows> = {
        ...store,
        begin: (request) => ({ ...(store.begin?.(request) as TransactionSession<Rows>), rollback }),
      };
      const process = startProcess({ store: broken, clock, policy: { guarantee: "exactly-once" } });
      const call = codeOf(
        process.run({}, () => {
          throw declined;
        }),
      );
      await clock.advance(2_000);
      expect(await call).toBe(declined);
      expect(await line.store.find(keyOf())).toBeUndefined();
    }
  });

  it("a transaction that cannot begin frees the key", async () => {
    const { store, clock, line } = database();
    const broken: Store<Rows> = {
      ...store,
      begin: () => {
        throw new Error("pool is closed");
      },
    };
    const process = startProcess({ store: broken, clock, policy: { guarantee: "exactly-once" } });
    let ran = 0;
    expect(await codeOf(process.run({}, () => ++ran))).toBe("STORE_UNAVAILABLE");
    expect([ran, await line.store.find(keyOf()), leftovers(process)]).toEqual([
      0,
      undefined,
      { here: 0, waiting: 0 },
    ]);
  });

  it("that a call asks of a store without transactions is refused before anything is claimed", async () => {
    const { clock, line } = database();
    const process = startProcess({ store: line.store, clock });
    expect(await codeOf(process.run({ guarantee: "exactly-once" }, () => "ran"))).toBe(
      "GUARANTEE_UNSUPPORTED",
    );
    expect(line.count("claim")).toBe(0);
  });
});
