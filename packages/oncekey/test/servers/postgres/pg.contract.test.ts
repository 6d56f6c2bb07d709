import { fromPg } from "oncekey/stores/postgres";
import { bindStoreContract } from "oncekey/testing";
import { Pool } from "pg";
import { afterAll, describe, it } from "vitest";
import { postgresUrl } from "../support/servers.js";
import { connectPg, openPostgresSubject } from "./subject.js";

const pool = new Pool({ connectionString: await postgresUrl(), max: 5 });
afterAll(() => pool.end());

bindStoreContract(
  { describe, it },
  {
    open: () =>
      openPostgresSubject({
        driver: fromPg(pool),
        outsider: pool,
        connect: connectPg(pool),
        write: (transaction, table, id) => transaction.query(`INSERT INTO ${table} (id) VALUES ($1)`, [id]),
      }),
    raceRounds: 30,
  },
);
