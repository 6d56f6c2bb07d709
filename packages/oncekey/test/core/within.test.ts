import { describe, expect, it } from "vitest";
import { call, opened } from "./database.js";
import { codeOf, declined, deferred } from "./processes.js";

describe("a call in the caller's transaction", () => {
  it("is there when the caller commits, and nobody hears of it before", async () => {
    const { database, idempotency, types } = opened();
    const tx = database.begin();
    const within = idempotency.within(tx);
    const charge = async (work: { readonly transaction: typeof tx; readonly attempt: number }) => {
      work.transaction.insert("paid");
      return work.attempt;
    };
    expect(await within.run(call(), charge)).toBe(1);
    expect([database.rows(), types()]).toEqual([[], []]);
    tx.commit();
    expect(types()).toEqual([]);
    within.committed();
    expect(types()).toEqual(["claimed", "completed", "finished"]);
    within.committed();
    expect(types()).toHaveLength(3);
    expect(await idempotency.runWithOutcome(call(), () => 2)).toMatchObject({ kind: "replayed", result: 1 });
    expect([database.rows(), database.savepoints.open]).toEqual([["paid"], 0]);
  });

  it("has never been when the caller does not", async () => {
    const { database, idempotency, types } = opened();
    await idempotency.within(database.begin()).run(call(), () => "lost");
    const again = await idempotency.within(database.begin()).runWithOutcome(call(), () => "kept");
    expect(again).toEqual({ kind: "executed", result: "kept", attempt: 1 });
    expect(types()).toEqual([]);
  });

  it("replays what is committed, and what an earlier call of the same transaction has done", async () => {
    const { database, idempotency } = opened();
    const first = database.begin();
    await idempotency.within(first).run(call(), () => "first");
    first.commit();
    const second = database.begin();
    const within = idempotency.within(second);
    expect(await within.runWithOutcome(call(), () => "no")).toMatchObject({
      kind: "replayed",
      result: "first",
    });
    await within.run(call("other"), () => "here");
    expect(await within.run(call("other"), () => "no")).toBe("here");
  });

  it("puts the transaction back when the work throws, and the transaction goes on", async () => {
    const { database, idempotency, types } = opened();
    const tx = database.begin();
    tx.insert("before");
    const within = idempotency.within(tx);
    const failing = within.run(call(), () => {
      tx.insert("half");
      throw declined;
    });
    expect(await codeOf(failing)).toBe(declined);
    expect(types()).toEqual(["finished"]);
    expect(await within.runWithOutcome(call(), () => "again")).toMatchObject({
      kind: "executed",
      attempt: 1,
    });
    tx.commit();
    expect([database.rows(), database.savepoints.open]).toEqual([["before"], 0]);
  });

  it("keeps a throw that is to be kept, without its rows", async () => {
    const { database, idempotency } = opened({ keep: () => true });
    const tx = database.begin();
    const failing = idempotency.within(tx).run(call(), () => {
      tx.insert("half");
      throw declined;
    });
    expect(await codeOf(failing)).toBe(declined);
    tx.commit();
    expect(database.rows()).toEqual([]);
    await expect(idempotency.run(call(), () => "no")).rejects.toMatchObject({
      replayed: true,
      message: "declined",
    });
  });

  it("gives what is not kept to its caller alone", async () => {
    const { database, idempotency } = opened({ keep: () => false });
    const tx = database.begin();
    const work = () => {
      tx.insert("half");
      return "as told";
    };
    expect(await idempotency.within(tx).run(call(), work)).toBe("as told");
    tx.commit();
    expect(database.rows()).toEqual([]);
    expect(await idempotency.runWithOutcome(call(), () => "anew")).toMatchObject({ kind: "executed" });
  });
});

describe("several keys in one transaction", () => {
  it("are claimed together before any work starts, and answered in their order", async () => {
    const { database, idempotency, types } = opened();
    await idempotency.run(call("b"), () => "b before");
    const told = types().length;
    const tx = database.begin();
    const within = idempotency.within(tx);
    const keys = ["c", "b", "a"];
    const outcomes = await within.runAll(
      keys.map((key) => call(key)),
      (work, position) => {
        work.transaction.insert(`row ${keys[position]}`);
        return `${keys[position]} now`;
      },
    );
    expect(outcomes.map(({ kind, result }) => [kind, result])).toEqual([
      ["executed", "c now"],
      ["replayed", "b before"],
      ["executed", "a now"],
    ]);
    expect(database.claims.map((requests) => requests.length)).toEqual([3]);
    tx.commit();
    within.committed();
    expect(database.rows()).toEqual(["row c", "row a"]);
    expect(
      types()
        .slice(told)
        .filter((type) => type === "finished"),
    ).toHaveLength(3);
  });

  it("are all refused if one is, and none runs", async () => {
    const { database, idempotency } = opened();
    await idempotency.run(call("b"), () => "b");
    const tx = database.begin();
    let runs = 0;
    const refused = idempotency.within(tx).runAll([call("a"), call("b", 2)], () => (runs += 1));
    expect([await codeOf(refused), runs]).toEqual(["KEY_REUSED", 0]);
    tx.commit();
    expect(await idempotency.runWithOutcome(call("a"), () => "a")).toMatchObject({ kind: "executed" });
  });

  it("are all undone if the work of one throws, or is not kept", async () => {
    const { database, idempotency } = opened({
      keep: (ending) => ending.kind === "returned" && ending.value !== "no",
    });
    const tx = database.begin();
    const within = idempotency.within(tx);
    const throwing = within.runAll([call("a"), call("b")], (_, position) => {
      tx.insert(`row ${position}`);
      if (position === 1) throw declined;
      return "a";
    });
    expect(await codeOf(throwing)).toBe(declined);
    const unkept = within.runAll([call("a"), call("b")], (_, position) => (position === 1 ? "no" : "yes"));
    expect(await codeOf(unkept)).toBe("NOT_COMMITTED");
    tx.commit();
    expect(database.rows()).toEqual([]);
    expect(await idempotency.runWithOutcome(call("a"), () => "a")).toMatchObject({ kind: "executed" });
  });

  it("run once where two calls have the same key, and not at all where those differ", async () => {
    const { database, idempotency } = opened();
    const within = idempotency.within(database.begin());
    let runs = 0;
    const twice = await within.runAll([call(), call()], () => (runs += 1));
    expect(twice).toMatchObject([
      { kind: "executed", result: 1 },
      { kind: "replayed", result: 1 },
    ]);
    expect(await codeOf(within.runAll([call("x", 1), call("x", 2)], () => (runs += 1)))).toBe("KEY_REUSED");
    expect(runs).toBe(1);
    const rejecting = [call("y"), { ...call("y"), onCompleted: "reject" as const }];
    expect(await codeOf(within.runAll(rejecting, () => (runs += 1)))).toBe("ALREADY_COMPLETED");
    expect(await within.runAll([], () => "nothing")).toEqual([]);
    const tooMany = within.runAll(
      Array.from({ length: 1_001 }, () => call()),
      () => "no",
    );
    expect(await codeOf(tooMany)).toBe("CONFIGURATION_INVALID");
  });
});

describe("calls on one transaction", () => {
  it("take turns when they are made at once: what one undoes is its own", async () => {
    const { database, idempotency } = opened();
    const tx = database.begin();
    const within = idempotency.within(tx);
    const end = deferred();
    const failing = within.run(call("a"), async () => {
      tx.insert("half a");
      await end.promise;
      throw declined;
    });
    const other = within.run(call("b"), () => {
      tx.insert("b");
      return "b";
    });
    end.resolve();
    expect([await codeOf(failing), await other]).toEqual([declined, "b"]);
    tx.commit();
    expect(database.rows()).toEqual(["b"]);
  });

  it("are part of the work that makes them", async () => {
    const { database, idempotency } = opened();
    const tx = database.begin();
    const within = idempotency.within(tx);
    const outer = within.run(call("outer"), async () => {
      const inner = await Promise.all(["x", "y"].map((key) => within.run(call(key), () => key)));
      return inner.join("");
    });
    expect(await outer).toBe("xy");
    tx.commit();
    expect(await idempotency.run(call("x"), () => "no")).toBe("x");
    expect(database.savepoints.open).toBe(0);
  });

  it("wait in a line that has an end", async () => {
    const { database, idempotency } = opened();
    const within = idempotency.within(database.begin());
    const end = deferred();
    const calls = Array.from({ length: 1_001 }, (_, index) =>
      codeOf(within.run(call(`k${index}`), () => end.promise)),
    );
    end.resolve();
    const codes = await Promise.all(calls);
    expect(codes.filter((code) => code === "CAPACITY_EXCEEDED")).toHaveLength(1);
  });
});
