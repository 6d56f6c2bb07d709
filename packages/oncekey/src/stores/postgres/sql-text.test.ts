import { describe, expect, it } from "vitest";
import { checkedSql, transactionControl } from "./sql-text.js";

describe("transaction control in a statement", () => {
  it.each([
    ["COMMIT", "COMMIT"],
    ["  commit;", "COMMIT"],
    ["insert into t values (1); END", "END"],
    ["-- a comment\nROLLBACK", "ROLLBACK"],
    ["/* a /* nested */ begin", "BEGIN"],
    ["START TRANSACTION READ ONLY", "START"],
    ["abort", "ABORT"],
    ["PREPARE TRANSACTION 'x'", "PREPARE TRANSACTION"],
    ["rollback work", "ROLLBACK"],
    ["select $$;$$; commit", "COMMIT"],
    ["select e'\\''; commit", "COMMIT"],
  ])("%j is found", (sql, control) => {
    expect(transactionControl(sql)).toBe(control);
    expect(() => checkedSql(sql)).toThrow(/is not allowed/);
  });

  it.each([
    "SAVEPOINT a; ROLLBACK TO a",
    "ROLLBACK TRANSACTION TO SAVEPOINT a",
    "RELEASE SAVEPOINT a",
    "INSERT INTO t VALUES ('; COMMIT')",
    'SELECT "a; commit" FROM t',
    "DO $body$ BEGIN PERFORM 1; END $body$",
    "SELECT CASE WHEN true THEN 1 END",
    "PREPARE q AS SELECT 1",
    "SELECT e'\\'; commit; '",
    "-- commit",
    "",
  ])("%j is none", (sql) => {
    expect(transactionControl(sql)).toBeUndefined();
    checkedSql(sql);
  });
});
