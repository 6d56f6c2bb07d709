/**
 * Node has `node:sqlite` without a flag since 22.13. Where it exists the contract runs on it; on Node 20 there is nothing that
 * could be run, and what can be said there is that the store asks for it by its shape and not by its module.
 */
import { fromNodeSqlite, type NodeSqliteDatabase, sqliteStore } from "oncekey/stores/sqlite";
import { bindStoreContract } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { openSqliteSubject, SQLITE_WAIVERS } from "./sqlite-subject.js";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

if (major > 22 || (major === 22 && minor >= 13)) {
  const name = "node:sqlite";
  const { DatabaseSync } = (await import(name)) as { DatabaseSync: new (path: string) => NodeSqliteDatabase };
  bindStoreContract(
    { describe, it },
    {
      open: () => openSqliteSubject((path) => fromNodeSqlite(() => new DatabaseSync(path))),
      waivers: SQLITE_WAIVERS,
    },
  );
} else {
  describe("a Node without node:sqlite", () => {
    it("says that there is no such module, when the store is made", () => {
      const open = () => process.getBuiltinModule("node:sqlite" as "node:fs") as never;
      expect(() => sqliteStore(fromNodeSqlite(open))).toThrow(/not undefined/);
    });
  });
}
