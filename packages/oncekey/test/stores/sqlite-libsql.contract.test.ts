import Database from "libsql";
import { fromLibsql } from "oncekey/stores/sqlite";
import { bindStoreContract } from "oncekey/testing";
import { describe, it } from "vitest";
import { openSqliteSubject, SQLITE_WAIVERS } from "./sqlite-subject.js";

bindStoreContract(
  { describe, it },
  { open: () => openSqliteSubject((path) => fromLibsql(() => new Database(path))), waivers: SQLITE_WAIVERS },
);
