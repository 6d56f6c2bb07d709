import { fromPostgresJs } from "oncekey/stores/postgres";
import { bindStoreContract } from "oncekey/testing";
import { Pool } from "pg";
import postgres from "postgres";
import { afterAll, describe, it } from "vitest";
import { postgresUrl } from "../support/servers.js";
import { type Connected, openPostgresSubject } from "./subject.js";

const url = await postgresUrl();
const pool = new Pool({ connectionString: url, max: 3 });
const sql = postgres(url, { max: 5 });
afterAll(async () => {
  await pool.end();
  await sql.end();
});

async function connect(): Promise<Connected> {
  const reserved = await sql.reserve();
  return { transaction: reserved, run: (text) => reserved.unsafe(text), free: () => reserved.release() };
}

bindStoreContract(
  { describe, it },
  {
    open: () =>
      openPostgresSubject({
        driver: fromPostgresJs((settings) => postgres(url, { ...settings })),
        outsider: pool,
        connect,
        write: (transaction, table, id) => transaction`INSERT INTO ${transaction(table)} (id) VALUES (${id})`,
      }),
    raceRounds: 30,
  },
);
