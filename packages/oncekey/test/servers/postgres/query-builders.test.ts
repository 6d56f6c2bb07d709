/**
 * Transactions of the tools that people use, each joined and guarded by one line: the recipes of the documentation.
 */
import { sql as drizzleSql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import knexFactory from "knex";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import { createIdempotency } from "oncekey";
import { type CallerTransaction, fromPg } from "oncekey/stores/postgres";
import postgres from "postgres";
import { DataSource } from "typeorm";
import { describe, expect, it, onTestFinished } from "vitest";
import { postgresUrl } from "../support/servers.js";
import { openPool, openStore } from "./fixture.js";

const url = await postgresUrl();

/** How an application runs something in a transaction of its tool's: it commits unless the function throws. */
type Transact = (
  work: (transaction: CallerTransaction, pay: (id: string) => Promise<unknown>) => Promise<void>,
) => Promise<void>;

const tools: Readonly<Record<string, (table: string) => Transact>> = {
  pg: (table) => async (work) => {
    const client = await openPool(url, 1).connect();
    try {
      await client.query("BEGIN");
      await work(client, (id) => client.query(`INSERT INTO ${table} (id) VALUES ($1)`, [id]));
      await client.query("COMMIT");
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    } finally {
      client.release();
    }
  },
  "postgres.js": (table) => async (work) => {
    const sql = postgres(url, { max: 1 });
    onTestFinished(() => sql.end());
    await sql.begin(async (tx) => {
      // It ends a transaction in which a statement has failed, also one that was caught, unless that was in a savepoint of its own.
      await work(tx, (id) => tx.savepoint((inner) => inner`INSERT INTO ${inner(table)} (id) VALUES (${id})`));
    });
  },
  Kysely: (table) => async (work) => {
    const db = new Kysely<Record<string, { id: string }>>({
      dialect: new PostgresDialect({ pool: openPool(url, 1) }),
    });
    await db.transaction().execute(async (trx) => {
      const tx = {
        query: (text: string, values: unknown[]) => trx.executeQuery(CompiledQuery.raw(text, values)),
      };
      await work(tx, (id) => trx.insertInto(table).values({ id }).execute());
    });
  },
  Drizzle: (table) => async (work) => {
    const db = drizzle({ client: openPool(url, 1) });
    await db.transaction(async (tx) => {
      const raw = (text: string, values: unknown[]) =>
        drizzleSql.join(
          text
            .split(/(\$\d+)/)
            .map((part, i) => (i % 2 === 1 ? drizzleSql`${values[(i - 1) / 2]}` : drizzleSql.raw(part))),
        );
      await work({ query: (text, values) => tx.execute(raw(text, values)) }, (id) =>
        tx.execute(drizzleSql`INSERT INTO ${drizzleSql.identifier(table)} (id) VALUES (${id})`),
      );
    });
  },
  Knex: (table) => async (work) => {
    const knex = knexFactory({ client: "pg", connection: url, pool: { min: 0, max: 1 } });
    onTestFinished(() => knex.destroy());
    await knex.transaction(async (trx) => {
      const tx = {
        query: (text: string, values: (string | null)[]) => trx.raw(text.replace(/\$\d+/g, "?"), values),
      };
      await work(tx, (id) => trx(table).insert({ id }));
    });
  },
  TypeORM: (table) => async (work) => {
    const source = await new DataSource({ type: "postgres", url, extra: { max: 1 } }).initialize();
    onTestFinished(() => source.destroy());
    await source.transaction(async (manager) => {
      const tx = {
        query: async (text: string, values: unknown[]) => ({ rows: await manager.query(text, values) }),
      };
      await work(tx, (id) => manager.query(`INSERT INTO ${table} (id) VALUES ($1)`, [id]));
    });
  },
};

describe.each(Object.entries(tools))("a transaction of %s", (_, transactOf) => {
  it("is joined: claim, rows and completion commit and roll back together, and repeats replay", async () => {
    const pool = openPool(url, 2);
    const { store, tablePrefix } = await openStore(fromPg(pool));
    const idempotency = createIdempotency({ store, scope: "global" });
    const table = `${tablePrefix}payments`;
    await pool.query(`CREATE TABLE ${table} (id text PRIMARY KEY)`);
    const transact = transactOf(table);
    const call = { operation: "pay", key: "k", input: 1 };
    const rows = async () =>
      (await pool.query(`SELECT id FROM ${table} ORDER BY id`)).rows.map(({ id }) => id);

    const failing = transact(async (tx, pay) => {
      await idempotency.within(tx).run(call, () => pay("lost"));
      throw new Error("later");
    });
    await expect(failing).rejects.toThrow("later");
    expect([await rows(), await idempotency.find({ ...call, scope: "global" as never })]).toEqual([
      [],
      undefined,
    ]);

    await transact(async (tx, pay) => {
      await pay("own");
      const failed = idempotency.within(tx).run({ ...call, key: "other" }, () => pay("own"));
      await expect(failed).rejects.toThrow();
      const receipt = await idempotency.within(tx).run(call, async () => {
        await pay("work");
        return { receipt: 7 };
      });
      expect(receipt).toEqual({ receipt: 7 });
    });
    await transact(async (tx) => {
      expect(await idempotency.within(tx).run(call, () => "no")).toEqual({ receipt: 7 });
    });
    expect(await rows()).toEqual(["own", "work"]);
    await idempotency.close();
  });

  it("is guarded: the claim is pinned, and one that is lost stops it", async () => {
    const pool = openPool(url, 2);
    const { store, tablePrefix } = await openStore(fromPg(pool));
    const idempotency = createIdempotency({ store, scope: "global" });
    const table = `${tablePrefix}payments`;
    await pool.query(`CREATE TABLE ${table} (id text PRIMARY KEY)`);
    const transact = transactOf(table);
    await idempotency.run({ operation: "pay", key: "k", input: 1 }, async ({ guard }) => {
      await transact(async (tx, pay) => {
        await guard(tx);
        await pay("work");
      });
      await pool.query(`UPDATE ${tablePrefix}records SET token = 'another'`);
      const late = transact(async (tx, pay) => {
        await guard(tx);
        await pay("late");
      });
      await expect(late).rejects.toMatchObject({ code: "LEASE_LOST" });
    });
    const { rows } = await pool.query(`SELECT id FROM ${table}`);
    expect(rows).toEqual([{ id: "work" }]);
    await idempotency.close();
  });
});
