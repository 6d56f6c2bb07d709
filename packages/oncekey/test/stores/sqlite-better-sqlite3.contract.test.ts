import { type BetterSqlite3Database, fromBetterSqlite3 } from "oncekey/stores/sqlite";
import { bindStoreContract } from "oncekey/testing";
import { describe, it } from "vitest";
import { loadBetterSqlite3 } from "../../../../scripts/drivers.mjs";
import { openSqliteSubject, SQLITE_WAIVERS } from "./sqlite-subject.js";

const Database = (await loadBetterSqlite3()) as new (path: string) => BetterSqlite3Database;

bindStoreContract(
  { describe, it },
  {
    open: () => openSqliteSubject((path) => fromBetterSqlite3(() => new Database(path))),
    waivers: SQLITE_WAIVERS,
  },
);
