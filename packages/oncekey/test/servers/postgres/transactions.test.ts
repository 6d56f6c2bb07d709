/**
 * Exactly once on Postgres: whatever becomes of COMMIT, rows and completion are there together or not at all, and the caller is
 * told which.
 */
import {
  fromPg,
  fromPostgresJs,
  type PostgresStore,
  type PostgresStoreOptions,
} from "oncekey/stores/postgres";
import postgres from "postgres";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ClaimRequest, TransactionSession } from "../../../src/core/store.js";
import { claimRequest, identityOf, repeatOf } from "../../../src/testing/requests.js";
import { outcome } from "../../../src/testing/store-contract/scenes.js";
import { faultProxy } from "../support/fault-proxy.js";
import { postgresUrl } from "../support/servers.js";
import { drivers, openPool, openStore } from "./fixture.js";
import { sleep } from "./subject.js";

const url = await postgresUrl();
const PAID = outcome("paid 10");
type Client = keyof typeof drivers;
const clients = Object.keys(drivers) as Client[];

/** Work on either client, by the one method that both have. */
interface Writes {
  query?(text: string, values?: unknown[]): Promise<unknown>;
  unsafe?(text: string, values?: unknown[]): Promise<unknown>;
}

async function begun(
  client: Client,
  address = url,
  maxTransactionMs = 5_000,
  options: PostgresStoreOptions = {},
) {
  const { store, tablePrefix } = await openStore(drivers[client](url), options);
  // The claim goes straight to the server, the transaction through whatever stands before it.
  const through =
    address === url ? store : (await openStore(drivers[client](address), { tablePrefix })).store;
  const payments = `${tablePrefix}payments`;
  const outsider = openPool(url, 2);
  await outsider.query(
    `CREATE TABLE ${payments} (id text PRIMARY KEY, parent text REFERENCES ${payments} DEFERRABLE INITIALLY DEFERRED)`,
  );
  onTestFinished(() => void outsider.query(`DROP TABLE ${payments}`));
  const request = claimRequest({ guarantee: "exactly-once" });
  await store.claim(request);
  const session = sessionOf(through as PostgresStore, request, maxTransactionMs);
  const writes = session.handle as Writes;
  const write = (text: string): Promise<unknown> =>
    (writes.query ?? writes.unsafe)?.(text) ?? Promise.reject();
  return {
    store,
    request,
    session,
    outsider,
    payments,
    write,
    insert: (id: string = request.key) => write(`INSERT INTO ${payments} (id) VALUES ('${id}')`),
    count: async () => (await outsider.query(`SELECT id FROM ${payments}`)).rows.length,
  };
}

function sessionOf(
  store: PostgresStore,
  request: ClaimRequest,
  maxTransactionMs: number,
): TransactionSession<unknown> {
  const session = store.begin?.({ ...identityOf(request), attempt: 1, maxTransactionMs });
  if (session === undefined) throw new Error("The store has no transactions");
  return session;
}

const isCommit = (bytes: Buffer): boolean => bytes.includes("COMMIT");

describe.each(clients)("a commit with %s", (client) => {
  it("whose answer is lost has happened, and is found out to have", async () => {
    const proxy = await faultProxy(url);
    onTestFinished(() => proxy.close());
    const { store, request, session, insert, count } = await begun(client, proxy.url);
    await insert();
    const cut = proxy.cutAfterNext(isCommit);
    expect(await session.commit(PAID, "everything")).toEqual({ kind: "committed" });
    await cut;
    expect(await count()).toBe(1);
    expect(await store.claim(repeatOf(request))).toMatchObject({ kind: "completed", outcome: PAID });
  });

  it("that never arrived has not happened, and is found out not to have", async () => {
    const proxy = await faultProxy(url);
    onTestFinished(() => proxy.close());
    const { store, request, session, insert, count } = await begun(client, proxy.url);
    await insert();
    const cut = proxy.cutBeforeNext(isCommit);
    expect(await session.commit(PAID, "everything")).toMatchObject({ kind: "refused" });
    await cut;
    expect(await count()).toBe(0);
    expect(await store.claim(repeatOf(request))).toMatchObject({ kind: "in-flight", holder: request.token });
  });

  it("of which nobody can tell is undecided", async () => {
    const proxy = await faultProxy(url);
    onTestFinished(() => proxy.close());
    const { session, insert } = await begun(client, proxy.url);
    await insert();
    // Neither the connection of the transaction is left nor any other to ask on.
    proxy.refuse();
    const cut = proxy.cutAfterNext(isCommit).then(proxy.cutAll);
    const committing = session.commit(PAID, "everything");
    await cut;
    expect(await committing).toEqual({ kind: "undecided" });
  });

  it("of a transaction that had failed is refused, though the work went on", async () => {
    const { session, insert, write, count } = await begun(client);
    await insert();
    await expect(write("SELECT 1 / 0")).rejects.toThrow(/division by zero/);
    expect(await session.commit(PAID, "everything")).toMatchObject({ kind: "refused" });
    expect(await count()).toBe(0);
  });

  it("that a deferred constraint forbids is refused", async () => {
    const { session, write, payments, count } = await begun(client);
    await write(`INSERT INTO ${payments} (id, parent) VALUES ('a', 'nobody')`);
    expect(await session.commit(PAID, "everything")).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("foreign key"),
    });
    expect(await count()).toBe(0);
  });

  it("is refused if the server has ended the session, and no statement runs outside the transaction", async () => {
    const { session, insert, write, outsider, count } = await begun(client);
    await insert("before");
    await outsider.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'oncekey work' AND state = 'idle in transaction'",
    );
    await expect(write("SELECT 1")).rejects.toThrow();
    await expect(insert("after")).rejects.toMatchObject({ code: "TRANSACTION_ABORTED" });
    expect(await session.commit(PAID, "everything")).toMatchObject({ kind: "refused" });
    expect(await count()).toBe(0);
  });

  it("is refused after maxTransactionMs, also in the middle of a statement", async () => {
    const { session, insert, write, count } = await begun(client, url, 200);
    await insert();
    await expect(write("SELECT pg_sleep(5)")).rejects.toThrow();
    await sleep(50);
    expect(await session.commit(PAID, "everything")).toMatchObject({ kind: "refused" });
    expect(await count()).toBe(0);
  });

  it("is the store's alone", async () => {
    const { session, insert, write, count } = await begun(client);
    await insert();
    for (const text of ["COMMIT", "ROLLBACK", "insert into t values (1); commit"]) {
      await expect(write(text)).rejects.toMatchObject({ code: "CONFIGURATION_INVALID" });
    }
    await write("SAVEPOINT mine");
    await write("ROLLBACK TO mine");
    expect(await session.commit(PAID, "everything")).toEqual({ kind: "committed" });
    expect(await count()).toBe(1);
  });

  it("is refused behind a pooler if it would meet another transaction", async () => {
    const { session, insert, write, count } = await begun(client, url, 5_000, { pooler: true });
    await insert();
    await write("SET LOCAL oncekey.transaction = 'another'");
    expect(await session.commit(PAID, "everything")).toMatchObject({ kind: "refused" });
    expect(await count()).toBe(0);
  });

  it.each([{}, { pooler: true }])(
    "of a token that has completed before tells of the first result: %o",
    async (options) => {
      const { store, request, session, insert, count } = await begun(client, url, 5_000, options);
      await insert();
      const first = outcome("paid 7");
      await store.complete({ ...identityOf(request), attempt: 1, outcome: first });
      expect(await session.commit(PAID, "everything")).toEqual({
        kind: "replaced",
        by: { token: request.token, outcome: first },
      });
      expect(await count()).toBe(0);
    },
  );

  it("keeps what is large, and what has to be quoted", async () => {
    for (const bytes of [0, 1, 1_000, 300_000]) {
      const { store, request, session, insert, count } = await begun(client);
      const kept = { head: `it's a \\ "head" of \0 ${bytes}`, body: new Uint8Array(bytes).fill(0x5c) };
      await insert();
      expect(await session.commit(kept, "everything")).toEqual({ kind: "committed" });
      expect(await count()).toBe(1);
      expect(await store.claim(repeatOf(request))).toMatchObject({ kind: "completed", outcome: kept });
    }
  });

  it("is refused once if the work has thrown away what the connection had prepared", async () => {
    const { store, session, insert, write, count } = await begun(client);
    await insert();
    await write("DEALLOCATE ALL");
    expect(await session.commit(PAID, "everything")).toMatchObject({ kind: "refused" });
    expect(await count()).toBe(0);
    const next = claimRequest({ guarantee: "exactly-once" });
    await store.claim(next);
    const again = sessionOf(store as PostgresStore, next, 5_000);
    await ((again.handle as Writes).query ?? (again.handle as Writes).unsafe)?.("SELECT 1");
    expect(await again.commit(PAID, "everything")).toEqual({ kind: "committed" });
  });

  it("that conflicts under SERIALIZABLE is refused, so that the work can be repeated", async () => {
    const { session, write, insert, outsider, count, payments } = await begun(client);
    await write("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    await write(`SELECT count(*) FROM ${payments}`);
    const other = await outsider.connect();
    await other.query("BEGIN ISOLATION LEVEL SERIALIZABLE");
    await other.query(`SELECT count(*) FROM ${payments}`);
    await other.query(`INSERT INTO ${payments} (id) VALUES ('other')`);
    await insert();
    await other.query("COMMIT");
    other.release();
    expect(await session.commit(PAID, "everything")).toMatchObject({ kind: "refused" });
    expect(await count()).toBe(1);
  });
});

describe("what the work writes through", () => {
  it("is pg's own query: texts, configurations, callbacks", async () => {
    const { store, tablePrefix } = await openStore(fromPg(openPool(url)));
    const request = claimRequest({ guarantee: "exactly-once" });
    await store.claim(request);
    const session = store.begin?.({ ...identityOf(request), attempt: 1, maxTransactionMs: 5_000 });
    const { query } = session?.handle ?? { query: undefined };
    if (query === undefined) throw new Error("no handle");
    const { rows } = await query<{ n: number }>("SELECT $1::int AS n", [7]);
    expect(rows).toEqual([{ n: 7 }]);
    const inRows = await query({ text: "SELECT 1, 2", rowMode: "array" });
    expect(inRows.rows).toEqual([[1, 2]]);
    const called = await new Promise((resolve, reject) =>
      query("SELECT 3 AS n", (error: Error, result: { rows: unknown }) =>
        error ? reject(error) : resolve(result.rows),
      ),
    );
    expect(called).toEqual([{ n: 3 }]);
    await expect(query({ submit: () => undefined } as never)).rejects.toMatchObject({
      code: "CONFIGURATION_INVALID",
    });
    expect(await session?.commit(PAID, "everything")).toEqual({ kind: "committed" });
    expect(tablePrefix).toBeTruthy();
  });

  it("is postgres.js's own sql: fragments, helpers, savepoints, shapes", async () => {
    const driver = fromPostgresJs((settings) => postgres(url, { ...settings }));
    const { store, tablePrefix } = await openStore(driver);
    const outsider = openPool(url, 1);
    const table = `${tablePrefix}rows`;
    await outsider.query(`CREATE TABLE ${table} (a int, b text)`);
    const request = claimRequest({ guarantee: "exactly-once" });
    await store.claim(request);
    const session = store.begin?.({ ...identityOf(request), attempt: 1, maxTransactionMs: 5_000 });
    const sql = session?.handle;
    if (sql === undefined) throw new Error("no handle");
    await sql`INSERT INTO ${sql(table)} ${sql([
      { a: 1, b: "one" },
      { a: 2, b: "two" },
    ])}`;
    const condition = sql`a = ${2}`;
    expect(await sql`SELECT b FROM ${sql(table)} WHERE ${condition}`).toEqual([{ b: "two" }]);
    const conditions = [sql`a = ${1}`, sql` OR a = ${2}`];
    expect(await sql`SELECT count(*)::int AS n FROM ${sql(table)} WHERE ${conditions}`).toEqual([{ n: 2 }]);
    expect(await sql`SELECT a FROM ${sql(table)} ORDER BY a`.values()).toEqual([[1], [2]]);
    await expect(
      sql.savepoint(async (inner) => {
        await inner`INSERT INTO ${inner(table)} ${inner({ a: 3, b: "three" })}`;
        throw new Error("not this one");
      }),
    ).rejects.toThrow("not this one");
    expect(await sql.unsafe(`SELECT max(a) AS a FROM ${table}`)).toEqual([{ a: 2 }]);
    expect(await session?.commit(PAID, "everything")).toEqual({ kind: "committed" });
    expect((await outsider.query(`SELECT a FROM ${table}`)).rows).toHaveLength(2);
    await outsider.query(`DROP TABLE ${table}`);
  });

  it("waits in line for a connection, and fails when none becomes free", async () => {
    const { store } = await openStore(fromPg(openPool(url)), { transactions: 1, timeoutMs: 200 });
    const [first, second] = [claimRequest(), claimRequest()];
    const [held, waiting] = [first, second].map((request) =>
      sessionOf(store as PostgresStore, request, 5_000),
    );
    const query = (session: TransactionSession<unknown> | undefined) =>
      (session as TransactionSession<Writes>).handle.query?.("SELECT 1");
    await query(held);
    await expect(query(waiting)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    // Claims have other connections.
    expect(await store.claim(claimRequest())).toMatchObject({ kind: "claimed" });
    await held?.rollback();
  });
});
