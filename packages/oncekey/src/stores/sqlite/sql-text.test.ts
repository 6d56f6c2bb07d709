import { describe, expect, it } from "vitest";
import { transactionControl } from "./sql-text.js";

describe("transactionControl", () => {
  it.each([
    ["COMMIT", "COMMIT"],
    ["  commit transaction;", "COMMIT"],
    ["END", "END"],
    ["Rollback", "ROLLBACK"],
    ["ROLLBACK TRANSACTION", "ROLLBACK"],
    ["BEGIN IMMEDIATE", "BEGIN"],
    ["-- a comment\nCOMMIT", "COMMIT"],
    ["/* ; */COMMIT", "COMMIT"],
    [";;COMMIT", "COMMIT"],
    ["SELECT 1; COMMIT", "COMMIT"],
    ["SELECT ';'; COMMIT", "COMMIT"],
    ["SELECT 'it''s'; COMMIT", "COMMIT"],
    ['SELECT "a;b", [c;d], `e;f`; COMMIT', "COMMIT"],
    ["CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END; COMMIT", "COMMIT"],
    ["CREATE TABLE trigger_log (x); END", "END"],
    ["SELECT CASE WHEN 1 THEN 2 END; COMMIT", "COMMIT"],
  ])("finds what ends or begins a transaction in %j", (sql, found) => {
    expect(transactionControl(sql)).toBe(found);
  });

  it.each([
    "SELECT 1",
    "",
    "INSERT INTO begin_log VALUES ('COMMIT')",
    "INSERT INTO t VALUES ('a; COMMIT')",
    'SELECT "COMMIT" FROM t',
    "SELECT 1; -- COMMIT",
    "SELECT 1 /* ; COMMIT ; */",
    "SAVEPOINT mine; ROLLBACK TO mine; RELEASE mine",
    "ROLLBACK TRANSACTION TO SAVEPOINT mine",
    "SELECT CASE WHEN 1 THEN 2 END",
    "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE b SET x = CASE WHEN 1 THEN 2 ELSE 3 END; SELECT 1; END",
    "CREATE TEMP TRIGGER IF NOT EXISTS t BEFORE DELETE ON a BEGIN DELETE FROM b; END; SELECT 1",
  ])("leaves %j alone", (sql) => {
    expect(transactionControl(sql)).toBeUndefined();
  });
});
