import { describe, expect, it } from "vitest";
import { checkedSql, transactionControl } from "./sql-text.js";

describe("what would end the transaction", () => {
  it.each([
    ["COMMIT", "COMMIT"],
    ["  -- first\n begin", "BEGIN"],
    ["# first\nstart transaction", "START"],
    ["/* a; b */ ROLLBACK", "ROLLBACK"],
    ["/*!50000 COMMIT */", "COMMIT"],
    ["/*M!100000 COMMIT */", "COMMIT"],
    ["update a set b = ';' ; commit", "COMMIT"],
    ["SET @a = 1, autocommit = 1", "SET autocommit"],
    ["set session autocommit=1", "SET autocommit"],
    ["create index i on t (a)", "CREATE"],
    ["TRUNCATE t", "TRUNCATE"],
    ["lock tables t write", "LOCK"],
    ["xa start 'a'", "XA"],
  ])("%s is found", (sql, found) => {
    expect(transactionControl(sql)).toBe(found);
  });

  it.each([
    "insert into t values ('; commit')",
    "select \"a;\" as `commit;`, 'it''s; commit', '\\'; commit'",
    "select 1 -- ; commit",
    "select 1 /* ; commit */",
    "rollback to savepoint a",
    "ROLLBACK WORK TO a",
    "savepoint a",
    "create temporary table t (a int)",
    "drop temporary table t",
    "select begin_at from t",
  ])("%s is not taken for it", (sql) => {
    expect(transactionControl(sql)).toBeUndefined();
  });
});

describe("what is sure to leave it open", () => {
  it.each(["select 1", "INSERT INTO t VALUES (1);", "with a as (select 1) select * from a", "(select 1)"])(
    "%s",
    (sql) => {
      expect(checkedSql(sql)).toBe(true);
    },
  );

  it.each(["call p()", "execute s", "select 1; call p()", "do f()", "/*!999999 x */ select 1"])(
    "not %s",
    (sql) => {
      expect(checkedSql(sql)).toBe(false);
    },
  );
});
