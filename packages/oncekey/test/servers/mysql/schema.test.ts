import { mysqlMigrations } from "oncekey/stores/mysql";
import { describe, expect, it } from "vitest";
import { claimRequest } from "../../../src/testing/requests.js";
import { mariadbUrl } from "../support/servers.js";
import { freshPrefix, openPool, openStore } from "./fixture.js";

const url = await mariadbUrl();

describe("the tables", () => {
  it("are made by four processes at once, each of which can use them then", async () => {
    const { store, another } = await openStore(url);
    const stores = [store, another(), another(), another()];
    await Promise.all(stores.map((one) => one.migrate()));
    const outcomes = await Promise.all(stores.map((one) => one.claim(claimRequest())));
    expect(outcomes.map(({ kind }) => kind)).toEqual(["claimed", "claimed", "claimed", "claimed"]);
  });

  it("are not made unasked: what is missing is said with what to do, and looked for again", async () => {
    const tablePrefix = freshPrefix();
    const { another } = await openStore(url);
    const unprepared = another({ tablePrefix });
    const { store } = await openStore(url, { tablePrefix: `${tablePrefix}x` });
    expect(store.name).toBe("mysql");
    const pool = openPool(url);
    await pool.query(`DROP TABLE ${tablePrefix}xrecords, ${tablePrefix}xmigrations`);
    await expect(store.claim(claimRequest())).rejects.toMatchObject({
      code: "CONFIGURATION_INVALID",
      message: expect.stringContaining("store.migrate()"),
    });
    await store.migrate();
    await expect(store.claim(claimRequest())).resolves.toMatchObject({ kind: "claimed" });
    await unprepared.close();
  });

  it("come from the printed text as well, which may be applied twice", async () => {
    const tablePrefix = freshPrefix();
    const pool = openPool(url, { multipleStatements: true });
    await pool.query(mysqlMigrations({ tablePrefix }));
    await pool.query(mysqlMigrations({ tablePrefix }));
    const { store } = await openStore(url, { tablePrefix });
    await expect(store.claim(claimRequest())).resolves.toMatchObject({ kind: "claimed" });
  });

  it("of a later version are refused", async () => {
    const { another, records } = await openStore(url);
    const pool = openPool(url);
    const migrations = records.replace("records", "migrations");
    await pool.query(`INSERT INTO ${migrations} VALUES (99, UTC_TIMESTAMP(6))`);
    const late = another();
    await expect(late.claim(claimRequest())).rejects.toMatchObject({
      code: "CONFIGURATION_INVALID",
      message: expect.stringContaining("version 99"),
    });
    await expect(late.migrate()).rejects.toMatchObject({ code: "CONFIGURATION_INVALID" });
  });

  it("are printed only for what is a prefix and a version", () => {
    expect(() => mysqlMigrations({ tablePrefix: "a-b", from: 7 })).toThrow(/tablePrefix.*\n.*from/);
    expect(mysqlMigrations({ from: 1 })).not.toContain("records");
  });
});
