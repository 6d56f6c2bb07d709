/**
 * What a pooler in transaction mode does, made visible: every transaction meets a session that knows nothing of the one before, and
 * no statement that another has prepared.
 */
import { fromPg, type PostgresDriver } from "oncekey/stores/postgres";
import { bindStoreContract } from "oncekey/testing";
import { Pool } from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { postgresUrl } from "../support/servers.js";
import { connectPg, openPostgresSubject } from "./subject.js";

const url = await postgresUrl();
const pool = new Pool({ connectionString: url, max: 8 });
afterAll(() => pool.end());

function pooled<Tx>(driver: PostgresDriver<Tx>): PostgresDriver<Tx> {
  return {
    ...driver,
    open(options) {
      expect([options.settings, options.prepares]).toEqual([{}, false]);
      const own = driver.open(options);
      return {
        ...own,
        async take() {
          const connection = await own.take();
          await connection.query({ name: undefined, text: "DISCARD ALL" }, []);
          return connection;
        },
      };
    },
  };
}

bindStoreContract(
  { describe, it },
  {
    open: () =>
      openPostgresSubject({
        driver: pooled(fromPg(pool)),
        outsider: pool,
        connect: connectPg(pool),
        options: { pooler: true, listen: fromPg(pool) },
        write: (transaction, table, id) => transaction.query(`INSERT INTO ${table} (id) VALUES ($1)`, [id]),
      }),
    raceRounds: 10,
  },
);
