import { describe, expect, it } from "vitest";
import { callerOf } from "./caller.js";

const answering = (result: unknown) => callerOf({ query: async () => result }).ask("SELECT …");
const failing = (error: unknown) => callerOf({ query: () => Promise.reject(error) }).ask("SELECT …");

describe("rows of whatever client", () => {
  it.each([
    ["mysql2 and Knex", [[{ answer: "a" }, { answer: "b" }], []]],
    ["mysql2 with rows as lists", [[["a"], ["b"]], []]],
    ["names of tables before columns", [[{ _answer: "a" }, { _answer: "b" }], []]],
    ["rows in the table's name", [[{ "": { answer: "a" } }, { "": { answer: "b" } }], []]],
    ["TypeORM and Prisma", [{ answer: "a" }, { answer: "b" }]],
    ["Kysely", { rows: [{ answer: "a" }, { answer: "b" }] }],
    ["bytes", [[{ answer: Buffer.from("a") }, { answer: Buffer.from("b") }], []]],
  ])("%s", async (_, result) => {
    expect(await answering(result)).toEqual(["a", "b"]);
  });

  it.each([
    ["none", [[], []]],
    ["the answer to a change", [{ affectedRows: 1, insertId: 0 }, undefined]],
    ["a change without a list", { affectedRows: 1 }],
    ["nothing at all", undefined],
  ])("%s is no row", async (_, result) => {
    expect(await answering(result)).toEqual([]);
  });
});

describe("errors of whatever client", () => {
  it.each([
    [{ errno: 1213, sqlState: "40001" }, "TRANSACTION_ABORTED"],
    [{ cause: { errno: 1213, sqlState: "40001" } }, "TRANSACTION_ABORTED"],
    [{ driverError: { errno: 1020, sqlState: "HY000" } }, "RETRY_TRANSACTION"],
    [{ fatal: true, code: "PROTOCOL_CONNECTION_LOST" }, "TRANSACTION_ABORTED"],
  ])("%j", async (error, code) => {
    await expect(failing(error)).rejects.toMatchObject({ code });
  });

  it("that mean nothing here pass as they are", async () => {
    const error = new Error("no such column");
    await expect(failing(error)).rejects.toBe(error);
  });
});
