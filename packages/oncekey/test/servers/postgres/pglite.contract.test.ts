import { PGlite } from "@electric-sql/pglite";
import { fromPglite } from "oncekey/stores/postgres";
import { bindStoreContract } from "oncekey/testing";
import { afterAll, describe, it } from "vitest";
import { openPostgresSubject } from "./subject.js";

const ONE_CONNECTION =
  "There is one connection: while a transaction of the application's is open nobody else is answered.";
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
    waivers: { joining: ONE_CONNECTION, pinning: ONE_CONNECTION },
  },
);
