import { describe, expect, it } from "vitest";
import { createIdempotency } from "../../src/core/idempotency.js";
import type { Policy } from "../../src/core/policy.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { call, type FakeDatabase, fakeDatabase, opened } from "./database.js";
import { codeOf, declined, deferred } from "./processes.js";

describe("a call in the caller's transaction is refused", () => {
  it("with other content, and leaves the transaction as it was", async () => {
    const { database, idempotency, types } = opened();
    await idempotency.run(call(), () => "first");
    const told = types().length;
    const tx = database.begin();
    expect(await codeOf(idempotency.within(tx).run(call("k", 2), () => "no"))).toBe("KEY_REUSED");
    expect(types().slice(told)).toEqual(["rejected", "finished"]);
    expect(database.savepoints.open).toBe(0);
  });

  it("while somebody else runs it, at once: it does not wait in an open transaction", async () => {
    const { database, idempotency } = opened();
    const end = deferred<string>();
    const running = idempotency.run(call(), () => end.promise);
    await Promise.resolve();
    const refused = idempotency.within(database.begin()).run(call(), () => "no");
    expect(await codeOf(refused)).toBe("IN_FLIGHT");
    end.resolve("done");
    await running;
  });

  it("when another transaction has the key, when its outcome is unknown, when repeats are to be refused", async () => {
    const { database, idempotency } = opened();
    const { store } = database;
    const answering = (answer: unknown) => ({
      ...database,
      store: { ...store, join: (tx: never) => ({ ...store.join?.(tx), claim: async () => [answer] }) },
    });
    const told = async (answer: unknown, policy: Policy = {}) => {
      const other = opened(policy, answering(answer) as unknown as FakeDatabase);
      return codeOf(other.idempotency.within(database.begin()).run(call(), () => "no"));
    };
    expect(await told({ kind: "contended" })).toBe("IN_FLIGHT");
    expect(await told({ kind: "unknown" })).toBe("OUTCOME_UNKNOWN");
    expect(await told({ kind: "exhausted", attempts: 3 })).toBe("ATTEMPTS_EXHAUSTED");
    expect(await told({ kind: "full", limit: "scope" })).toBe("CAPACITY_EXCEEDED");
    await idempotency.run(call(), () => "first");
    const once = opened({ onCompleted: "reject" }, database);
    const repeat = once.idempotency.within(database.begin()).run(call(), () => "no");
    expect(await codeOf(repeat)).toBe("ALREADY_COMPLETED");
  });

  it("inside work of the same key, joined or not", async () => {
    const { database, idempotency } = opened();
    const tx = database.begin();
    const within = idempotency.within(tx);
    const codes = within.run(call(), async () => [
      await codeOf(within.run(call(), () => "no")),
      await codeOf(idempotency.run(call(), () => "no")),
    ]);
    expect(await codes).toEqual(["KEY_REENTERED", "KEY_REENTERED"]);
  });

  it("by an instance that is closing, and with options that have no meaning there", async () => {
    const { database, idempotency } = opened();
    const within = idempotency.within(database.begin());
    const wrong = within.run({ ...call(), guarantee: "at-least-once" } as never, () => "no");
    await expect(wrong).rejects.toMatchObject({ problems: [expect.stringMatching(/^guarantee/)] });
    await idempotency.close();
    expect(await codeOf(within.run(call(), () => "no"))).toBe("CLOSING");
  });

  it("by a store that cannot reach the transaction", () => {
    const idempotency = createIdempotency({ store: memoryStore() });
    const unsupported = expect.objectContaining({ code: "GUARANTEE_UNSUPPORTED" });
    expect(() => idempotency.within({} as never)).toThrowError(unsupported);
  });

  it("when the database has ended the transaction under its work", async () => {
    const { database, idempotency } = opened();
    const tx = database.begin();
    const killed = idempotency.within(tx).run(call(), () => {
      tx.kill();
      throw declined;
    });
    expect(await codeOf(killed)).toBe("TRANSACTION_ABORTED");
    const unnoticed = database.begin();
    const returning = idempotency.within(unnoticed).run(call(), () => {
      unnoticed.kill();
      return "done";
    });
    expect(await codeOf(returning)).toBe("TRANSACTION_ABORTED");
  });

  it("with the cause, when a statement fails for a reason that is none of ours", async () => {
    const database = fakeDatabase();
    const broken = { savepoint: () => Promise.reject(new Error("socket")), handle: undefined };
    const store = { ...database.store, join: () => broken as never };
    const { idempotency } = opened({}, { ...database, store });
    const failed = idempotency.within(database.begin()).run(call(), () => "no");
    await expect(failed).rejects.toMatchObject({ code: "STORE_UNAVAILABLE", cause: new Error("socket") });
  });
});

describe("guard", () => {
  it("pins the claim that is held, and throws when it is another's", async () => {
    const { database, idempotency, types } = opened();
    const codes = await idempotency.run(call(), async ({ guard, signal }) => {
      const held = await codeOf(guard(database.begin()));
      const later = database.begin();
      later.contents.records.clear();
      return [held, await codeOf(guard(later)), signal.aborted, await codeOf(guard(database.begin()))];
    });
    expect(codes).toEqual([undefined, "LEASE_LOST", true, "LEASE_LOST"]);
    expect(types()).toContain("lease-lost");
  });

  it("is refused by a store that cannot reach the transaction", async () => {
    const idempotency = createIdempotency({ store: memoryStore(), scope: "global" });
    const told = idempotency.run(call(), ({ guard }) => codeOf(guard({} as never)));
    expect(await told).toBe("GUARANTEE_UNSUPPORTED");
  });

  it("of joined work sees its claim in the transaction that it has joined, and nowhere else", async () => {
    const { database, idempotency } = opened();
    const tx = database.begin();
    const told = idempotency.within(tx).run(call(), async ({ guard, assertHeld, confirm, signal }) => {
      assertHeld();
      await confirm();
      return [await codeOf(guard(tx)), await codeOf(guard(database.begin())), signal.aborted];
    });
    expect(await told).toEqual([undefined, "LEASE_LOST", false]);
  });
});
