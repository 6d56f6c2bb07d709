import { PGlite } from "@electric-sql/pglite";
import { fromPglite } from "oncekey/stores/postgres";
import { bindStoreContract } from "oncekey/testing";
import { afterAll, describe, it } from "vitest";
import { openPostgresSubject } from "./subject.js";

const database = await PGlite.create();
afterAll(() => database.close());

bindStoreContract(
  { describe, it },
  {
    open: () =>
      openPostgresSubject({
        driver: fromPglite(database),
        outsider: database,
        write: (transaction, table, id) => transaction.query(`INSERT INTO ${table} (id) VALUES ($1)`, [id]),
      }),
    raceRounds: 10,
  },
);
