import { fromPostgresJs } from "oncekey/stores/postgres";
import { bindStoreContract } from "oncekey/testing";
import { Pool } from "pg";
import postgres from "postgres";
import { afterAll, describe, it } from "vitest";
import { postgresUrl } from "../support/servers.js";
import { openPostgresSubject } from "./subject.js";

const url = await postgresUrl();
const pool = new Pool({ connectionString: url, max: 3 });
afterAll(() => pool.end());

bindStoreContract(
  { describe, it },
  {
    open: () =>
      openPostgresSubject({
        driver: fromPostgresJs((settings) => postgres(url, { ...settings })),
        outsider: pool,
        write: (transaction, table, id) => transaction`INSERT INTO ${transaction(table)} (id) VALUES (${id})`,
      }),
    raceRounds: 30,
  },
);
