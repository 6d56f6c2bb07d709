/**
 * The database as its administrator set it up: without the tables, read-only, with other defaults. What cannot work is said
 * clearly; what should not matter does not.
 */
import { fromPg, postgresMigrations, postgresStore } from "oncekey/stores/postgres";
import { Pool } from "pg";
import { afterEach, describe, expect, it, vi } from "vitest";
import { claimRequest, repeatOf } from "../../../src/testing/requests.js";
import { completion } from "../../../src/testing/store-contract/scenes.js";
import { postgresUrl } from "../support/servers.js";
import { drivers, openPool, openStore } from "./fixture.js";
import { freshPrefix, sleep } from "./subject.js";

/** A database of its own, for its settings are changed. */
const url = await postgresUrl();
const database = new URL(url).pathname.slice(1);

async function alter(...settings: readonly string[]): Promise<void> {
  // The settings that are being changed do not hold for whoever changes them.
  const options = "-c default_transaction_read_only=off";
  const admin = new Pool({ connectionString: url, max: 1, options });
  for (const setting of settings) await admin.query(`ALTER DATABASE ${database} ${setting}`);
  await admin.end();
}

afterEach(async () => {
  vi.useRealTimers();
  await alter("RESET ALL");
});

const unmigrated = (text: RegExp) => ({
  code: "CONFIGURATION_INVALID",
  message: expect.stringMatching(text),
});

describe("a database that cannot be used", () => {
  it("without the tables is refused with what to run, and used as soon as they are there", async () => {
    const { another } = await openStore(fromPg(openPool(url)));
    const tablePrefix = freshPrefix();
    const store = (await openStore(fromPg(openPool(url)), { tablePrefix })).store;
    await openPool(url).query(`DROP TABLE ${tablePrefix}records, ${tablePrefix}migrations`);
    await expect(store.claim(claimRequest())).rejects.toMatchObject(unmigrated(/postgresMigrations\(\)/));
    await expect(store.claim(claimRequest())).rejects.toMatchObject(unmigrated(/store\.migrate\(\)/));
    await store.migrate();
    expect(await store.claim(claimRequest())).toMatchObject({ kind: "claimed" });
    expect(await another().find(claimRequest().key)).toBeUndefined();
  });

  it.each([
    ["an older", 0, /missing or older .*version 0 of 1/],
    ["a later", 99, /is at version 99, this package knows 1/],
  ])("%s version of the tables is refused", async (_, version, message) => {
    const { another, tablePrefix } = await openStore(fromPg(openPool(url)));
    await openPool(url).query(`UPDATE ${tablePrefix}migrations SET version = ${version}`);
    await expect(another().claim(claimRequest())).rejects.toMatchObject(unmigrated(message));
  });

  it("a read-only one is refused as such", async () => {
    const { another } = await openStore(fromPg(openPool(url)));
    await alter("SET default_transaction_read_only = on");
    await expect(another().claim(claimRequest())).rejects.toMatchObject(unmigrated(/read-only/));
  });

  it("one whose user may not write is refused with what is missing", async () => {
    const { tablePrefix } = await openStore(fromPg(openPool(url)));
    const admin = openPool(url, 1);
    const role = `reader_${process.pid}`;
    await admin.query(`CREATE ROLE ${role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`);
    const readers = new URL(url);
    readers.username = role;
    const store = postgresStore(fromPg(openPool(readers.href)), { tablePrefix });
    try {
      await expect(store.claim(claimRequest())).rejects.toMatchObject(unmigrated(/needs SELECT, INSERT/));
    } finally {
      await store.close();
      await admin.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    }
  });
});

describe("settings of the database", () => {
  it.each([
    [
      "formats",
      ["SET datestyle = 'German, DMY'", "SET timezone = 'Asia/Kathmandu'", "SET bytea_output = 'escape'"],
    ],
    ["texts", ["SET standard_conforming_strings = off", "SET client_encoding = 'LATIN1'"]],
    ["numbers", ["SET extra_float_digits = -15", "SET intervalstyle = 'sql_standard'"]],
    ["isolation", ["SET default_transaction_isolation = 'serializable'"]],
    ["plans", ["SET enable_indexscan = off", "SET jit = on", "SET jit_above_cost = 0"]],
    ["the search path", ["SET search_path = pg_temp"]],
  ])("%s do not matter", async (_, settings) => {
    await alter(...settings);
    const pool = openPool(url);
    const { store } = await openStore(fromPg(pool));
    const request = claimRequest({
      leaseMs: 12_345,
      retentionMs: 3_600_000,
      label: "größe \\ \0 'x' \ud800",
    });
    const body = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    const outcome = { head: 'a "head" \\ with é and \0', body };
    const races = Array.from({ length: 20 }, () => claimRequest());
    const claims = await Promise.all(
      [request, ...races, ...races.map((race) => repeatOf(race))].map((one) => store.claim(one)),
    );
    expect(claims.filter(({ kind }) => kind === "claimed")).toHaveLength(21);
    const { leaseRemainingMs, label } = (await store.find(request.key)) ?? {};
    expect(label).toBe(request.label);
    expect(leaseRemainingMs).toBeGreaterThan(5_000);
    expect(leaseRemainingMs).toBeLessThanOrEqual(12_345);
    await store.complete({ ...completion(request), outcome });
    expect(await store.claim(repeatOf(request))).toMatchObject({ kind: "completed", outcome });
  });

  it("parsers that the application has set for its own values do not matter", async () => {
    const { types } = await import("pg");
    const parsers = [17, 20, 25, 701, 1184].map((oid) => [oid, types.getTypeParser(oid)] as const);
    for (const [oid] of parsers) types.setTypeParser(oid, () => "changed");
    try {
      const { store } = await openStore(fromPg(openPool(url)));
      const request = claimRequest();
      await store.claim(request);
      await store.complete(completion(request));
      expect(await store.claim(repeatOf(request))).toMatchObject({ kind: "completed" });
    } finally {
      for (const [oid, parser] of parsers) types.setTypeParser(oid, parser);
    }
  });
});

describe("the clock", () => {
  it("of the application does not matter: the server's judges", async () => {
    const { store, another } = await openStore(fromPg(openPool(url)));
    const request = claimRequest({ leaseMs: 400 });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000 });
    await store.claim(request);
    vi.setSystemTime(Date.now() + 7_200_000);
    expect(await another().claim(repeatOf(request))).toMatchObject({ kind: "in-flight" });
    vi.setSystemTime(0);
    await sleep(500);
    expect(await another().claim(repeatOf(request))).toMatchObject({ kind: "claimed", takeover: true });
  });
});

describe("the migrations", () => {
  it("can be applied as text, twice, by several at once, in a schema of its own", async () => {
    const pool = openPool(url);
    await pool.query("CREATE SCHEMA shop");
    const names = { schema: "shop", tablePrefix: "keys_" };
    await pool.query(postgresMigrations(names));
    await pool.query(postgresMigrations(names));
    const { store, another } = await openStore(fromPg(pool), names);
    await Promise.all([store, another(), another()].map((one) => one.migrate()));
    expect(await store.claim(claimRequest())).toMatchObject({ kind: "claimed" });
    const { rows } = await pool.query("SELECT count(*)::int AS n FROM shop.keys_records");
    expect(rows).toEqual([{ n: 1 }]);
    expect(postgresMigrations({ ...names, from: 1 })).toBe("");
  });

  it.each(Object.entries(drivers))("are not applied by a store that is closed, on %s", async (_, driver) => {
    const { store } = await openStore(driver(url));
    await store.close();
    await expect(store.migrate()).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: expect.stringMatching(/closed/),
    });
  });

  it("refuse names that are none", () => {
    for (const options of [
      { schema: 'a"; DROP' },
      { tablePrefix: "Ünsafe" },
      { from: 2 },
      { form: 1 } as object,
    ]) {
      expect(() => postgresMigrations(options)).toThrow(
        expect.objectContaining({ code: "CONFIGURATION_INVALID" }),
      );
    }
  });
});

describe("a table with more rows than one page has time for", () => {
  it("is paged through all the same, by a filter that matches little", async () => {
    const { store, records } = await openStore(fromPg(openPool(url)));
    const [needle, other] = [claimRequest({ operation: "needle" }), claimRequest({ operation: "hay" })];
    await Promise.all([store.claim(needle), store.claim(other)]);
    await openPool(url).query(
      `INSERT INTO ${records} SELECT (jsonb_populate_record(r, jsonb_build_object('key', 'hay ' || n))).*
       FROM ${records} r CROSS JOIN generate_series(1, 3500) n WHERE r.operation = 'hay'`,
    );
    const found: string[] = [];
    const cursors: (string | undefined)[] = [];
    do {
      const page = await store.list({ operation: "needle", limit: 10, withinMs: 0, cursor: cursors.at(-1) });
      found.push(...page.records.map(({ key }) => key));
      cursors.push(page.cursor);
    } while (cursors.at(-1) !== undefined);
    expect(found).toEqual([needle.key]);
    expect(cursors.length).toBeGreaterThan(3);
  });
});

describe("limits that the application has set for itself", () => {
  const limits = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"] as const;
  const ours = Object.fromEntries(limits.map((name) => [name, "1500"]));
  const theirs = Object.fromEntries(limits.map((name) => [name, 60_000]));
  const inAddress = `${url}?${limits.map((name) => `${name}=60000`).join("&")}`;

  it.each([
    ["its pool", { connectionString: url, ...theirs }],
    ["its address", { connectionString: inAddress }],
  ])("in %s do not replace the store's", async (_, config) => {
    const pool = new Pool({ max: 1, ...config });
    const own = fromPg(pool).open({
      applicationName: "oncekey records",
      max: 1,
      connectMs: 5_000,
      settings: ours,
      prepares: true,
    });
    const connection = await own.take();
    const text = `SELECT ${limits.map((name) => `current_setting('${name}')`).join(", ")}`;
    expect(await connection.query({ name: undefined, text }, [])).toEqual([["1500ms", "1500ms", "1500ms"]]);
    connection.free();
    await Promise.all([own.close(), pool.end()]);
  });
});

describe("a store that cannot find out whether it hears", () => {
  it("leaves no connection behind that listens", async () => {
    const driver = fromPg(openPool(url));
    const mute: typeof driver = {
      ...driver,
      open(options) {
        const pool = driver.open(options);
        return {
          ...pool,
          async take() {
            const connection = await pool.take();
            return {
              ...connection,
              query: (statement, params) =>
                statement.name === "oncekey_notify"
                  ? Promise.reject(new Error("nothing can be said"))
                  : connection.query(statement, params),
            };
          },
        };
      },
    };
    const { store } = await openStore(mute);
    await store.claim(claimRequest());
    await store.close();
    const outsider = openPool(url);
    const listening = async () => {
      const sql =
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'oncekey listen'";
      return (await outsider.query(sql)).rows.length;
    };
    await vi.waitFor(async () => expect(await listening()).toBe(0), 5_000);
  });
});
