import { manualClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { claimOf, completionOf, resultOf } from "./sqlite-fixture.js";
import { INSERT, openWork } from "./sqlite-work.js";

describe("commit", () => {
  it("keeps rows and completion together", async () => {
    const { begin, store, claim, payments } = await openWork();
    const session = begin();
    expect(session.used()).toBe(false);
    expect(await session.handle.run(INSERT, [5])).toMatchObject({ changes: 1 });
    expect(await session.handle.get<{ amount: number }>("SELECT amount FROM payments")).toEqual({
      amount: 5,
    });
    expect(await session.handle.all("SELECT amount FROM payments")).toEqual([{ amount: 5 }]);
    expect(session.used()).toBe(true);
    expect(payments()).toBe(0);
    expect(await session.commit(resultOf("paid"), "everything")).toEqual({ kind: "committed" });
    expect(payments()).toBe(1);
    expect(await store.claim(claimOf("a"))).toMatchObject({ kind: "completed", outcome: resultOf("paid") });
    expect(await store.complete(completionOf(claim))).toEqual({ kind: "completed", how: "already" });
  });

  it("takes rows where they are asked for, and refuses a run that would leave them in the way", async () => {
    const { begin, store, payments } = await openWork();
    const refused = begin();
    await expect(refused.handle.run(`${INSERT} RETURNING id`, [5])).rejects.toMatchObject({
      code: "CONFIGURATION_INVALID",
    });
    await refused.rollback();
    const session = begin();
    expect(await session.handle.all(`${INSERT} RETURNING id`, [5])).toEqual([{ id: 1 }]);
    expect(await session.commit(resultOf("paid"), "everything")).toEqual({ kind: "committed" });
    expect(payments()).toBe(1);
    expect(await store.claim(claimOf("b"))).toMatchObject({ kind: "claimed" });
  });

  it('with "record" drops the rows and keeps the completion', async () => {
    const { begin, store, payments } = await openWork();
    const session = begin();
    await session.handle.run(INSERT, [5]);
    expect(await session.commit(resultOf("declined"), "record")).toEqual({ kind: "committed" });
    expect(payments()).toBe(0);
    expect(await store.claim(claimOf("a"))).toMatchObject({
      kind: "completed",
      outcome: resultOf("declined"),
    });
  });

  it("rolls everything back when another token has the key", async () => {
    const clock = manualClock();
    const { begin, store, payments } = await openWork({ clock });
    await clock.advance(30_000);
    const other = claimOf("a");
    expect(await store.claim(other)).toMatchObject({ kind: "claimed", takeover: true });
    const session = begin();
    await session.handle.run(INSERT, [5]);
    expect(await session.commit(resultOf("late"), "everything")).toEqual({ kind: "replaced", by: undefined });
    expect(payments()).toBe(0);
    expect(await store.find(other.key)).toMatchObject({ state: "claimed" });
  });

  it("does not add rows a second time when its token had completed the key before", async () => {
    const { begin, payments, claim } = await openWork();
    const [first, second] = [begin(), begin()];
    await first.handle.run(INSERT, [5]);
    await first.commit(resultOf("first"), "everything");
    await second.handle.run(INSERT, [6]);
    expect(await second.commit(resultOf("second"), "everything")).toEqual({
      kind: "replaced",
      by: { token: claim.token, outcome: resultOf("first") },
    });
    expect(payments()).toBe(1);
  });

  it("without any statement is a plain completion", async () => {
    const { begin, store } = await openWork();
    const session = begin();
    expect(await session.commit(resultOf("nothing to write"), "everything")).toEqual({ kind: "committed" });
    expect(session.used()).toBe(false);
    expect(await store.claim(claimOf("a"))).toMatchObject({ kind: "completed" });
  });

  it("waits for statements that the work did not await", async () => {
    const { begin, payments } = await openWork();
    const session = begin();
    const pending = [session.handle.run(INSERT, [5]), session.handle.run(INSERT, [6])];
    expect(await session.commit(resultOf("paid"), "everything")).toEqual({ kind: "committed" });
    await Promise.all(pending);
    expect(payments()).toBe(2);
  });

  it("is refused by a constraint that is checked at COMMIT, and nothing is left", async () => {
    const { application, begin, store, payments } = await openWork();
    application.exec(
      "CREATE TABLE refunds (payment INTEGER NOT NULL REFERENCES payments (id) DEFERRABLE INITIALLY DEFERRED)",
    );
    const session = begin();
    await session.handle.exec("PRAGMA defer_foreign_keys = on");
    await session.handle.run(INSERT, [5]);
    await session.handle.run("INSERT INTO refunds VALUES (?)", [99]);
    const answer = await session.commit(resultOf("refunded"), "everything");
    expect(answer.kind).toBe("refused");
    expect(payments()).toBe(0);
    expect(await store.claim(claimOf("a"))).toMatchObject({ kind: "in-flight" });
  });
});

describe("the end", () => {
  it("by rollback leaves nothing behind, also twice, and the next transaction begins", async () => {
    const { begin, payments } = await openWork();
    const session = begin();
    await session.handle.run(INSERT, [5]);
    await session.rollback();
    await session.rollback();
    expect(payments()).toBe(0);
    await expect(session.handle.run(INSERT, [6])).rejects.toMatchObject({ code: "TRANSACTION_CLOSED" });
    await expect(session.commit(resultOf("x"), "everything")).rejects.toMatchObject({
      code: "TRANSACTION_CLOSED",
    });
    const next = begin();
    await next.handle.run(INSERT, [7]);
    expect(await next.commit(resultOf("paid"), "everything")).toEqual({ kind: "committed" });
    await expect(next.handle.get("SELECT 1")).rejects.toMatchObject({ code: "TRANSACTION_CLOSED" });
    expect(payments()).toBe(1);
  });

  it("comes by itself after maxTransactionMs", async () => {
    const clock = manualClock();
    const { begin, payments, store } = await openWork({ clock });
    const session = begin(1_000);
    await session.handle.run(INSERT, [5]);
    await clock.advance(1_000);
    await expect(session.handle.run(INSERT, [6])).rejects.toMatchObject({ code: "TRANSACTION_CLOSED" });
    expect(await session.commit(resultOf("late"), "everything")).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("1000 ms"),
    });
    expect(payments()).toBe(0);
    expect(await store.claim(claimOf("b"))).toMatchObject({ kind: "claimed" });
  });

  it("comes with the store's", async () => {
    const { begin, store, payments } = await openWork();
    const [open, waiting] = [begin(), begin()];
    await open.handle.run(INSERT, [5]);
    const late = waiting.handle.run(INSERT, [6]);
    const refused = expect(late).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await store.close();
    await refused;
    expect(payments()).toBe(0);
    expect(await open.commit(resultOf("x"), "everything")).toMatchObject({ kind: "refused" });
    expect(await waiting.commit(resultOf("x"), "everything")).toMatchObject({ kind: "refused" });
  });
});

describe("a transaction ended behind our back", () => {
  it.each([
    "COMMIT",
    "END TRANSACTION",
    "ROLLBACK",
    "BEGIN",
    "INSERT INTO payments (amount) VALUES (1); commit; BEGIN",
    "/* ; */ -- ; \n rollback transaction",
  ])("is not, by %j: it is refused before it runs", async (sql) => {
    const { begin, payments } = await openWork();
    const session = begin();
    await session.handle.run(INSERT, [5]);
    await expect(session.handle.exec(sql)).rejects.toMatchObject({ code: "CONFIGURATION_INVALID" });
    expect(await session.commit(resultOf("paid"), "everything")).toEqual({ kind: "committed" });
    expect(payments()).toBe(1);
  });

  it("is not half of what was asked: a second statement is refused, not dropped", async () => {
    const { begin, payments } = await openWork();
    const session = begin();
    const two = "INSERT INTO payments (amount) VALUES (1); INSERT INTO payments (amount) VALUES (2)";
    for (const method of ["run", "get", "all"] as const) {
      await expect(session.handle[method](two)).rejects.toMatchObject({ code: "CONFIGURATION_INVALID" });
    }
    expect(session.used()).toBe(false);
    await session.handle.run("INSERT INTO payments (amount) VALUES (1); -- and no more");
    await session.handle.exec(two.replaceAll("1", "3"));
    await session.commit(resultOf("paid"), "everything");
    expect(payments()).toBe(3);
  });

  it("by SQLite itself is noticed: nothing after it is written on its own", async () => {
    const { begin, payments, store } = await openWork();
    const session = begin();
    await session.handle.run(INSERT, [5]);
    await expect(session.handle.run("INSERT OR ROLLBACK INTO payments (amount) VALUES (5)")).rejects.toThrow(
      /UNIQUE/,
    );
    await expect(session.handle.run(INSERT, [6])).rejects.toMatchObject({ code: "TRANSACTION_ABORTED" });
    expect(await session.commit(resultOf("paid"), "everything")).toMatchObject({ kind: "refused" });
    expect(payments()).toBe(0);
    expect(await store.claim(claimOf("a"))).toMatchObject({ kind: "in-flight" });
  });

  it("in a way that the text does not show is noticed at the end", async () => {
    const { begin, payments } = await openWork();
    const session = begin();
    await session.handle.run(INSERT, [5]);
    await session.handle.exec("RELEASE oncekey_work");
    expect(await session.commit(resultOf("paid"), "everything")).toMatchObject({ kind: "refused" });
    expect(payments()).toBe(0);
  });

  it("is not what a failed statement does: the work may catch it and go on", async () => {
    const { begin, payments } = await openWork();
    const session = begin();
    await session.handle.run(INSERT, [5]);
    await expect(session.handle.run(INSERT, [5])).rejects.toMatchObject({ code: "SQLITE_CONSTRAINT_UNIQUE" });
    await session.handle.exec("SAVEPOINT mine; INSERT INTO payments (amount) VALUES (7); ROLLBACK TO mine");
    await session.handle.run(INSERT, [6]);
    expect(await session.commit(resultOf("paid"), "everything")).toEqual({ kind: "committed" });
    expect(payments()).toBe(2);
  });
});

describe("values", () => {
  it.each([[true], [new Date()], [undefined], [Number.NaN], [{}], [[1]]])("refuses %o", async (value) => {
    const { begin } = await openWork();
    const session = begin();
    await expect(session.handle.run(INSERT, [value as never])).rejects.toThrow(/Parameter 1 is/);
    await session.rollback();
  });

  it("takes a single parameter that is bytes, and gives bytes back", async () => {
    const { begin } = await openWork();
    const { handle, rollback } = begin();
    await handle.exec("CREATE TABLE blobs (value BLOB)");
    await handle.run("INSERT INTO blobs VALUES (?)", [Uint8Array.of(1, 2, 3)]);
    expect(await handle.get("SELECT value FROM blobs")).toEqual({ value: Uint8Array.of(1, 2, 3) });
    await rollback();
  });
});
