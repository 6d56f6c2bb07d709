import { copyFileSync, writeFileSync } from "node:fs";
import Database from "libsql";
import { fromBetterSqlite3, fromLibsql, fromNodeSqlite, sqliteStore } from "oncekey/stores/sqlite";
import { describe, expect, it } from "vitest";
import { claimOf, completionOf, keyOf, openConnection, openStore, temporaryFile } from "./sqlite-fixture.js";

const CONFIGURATION = { code: "CONFIGURATION_INVALID" };

describe("opening", () => {
  it.each([
    ["a connection", (path: string) => new Database(path), /takes a function/],
    ["a path", (path: string) => path, /takes a function/],
    ["nothing", () => undefined, /takes a function/],
    ["a function that returns a path", (path: string) => () => path, /not string/],
    ["a function that returns a promise", () => async () => ({}), /a promise/],
    ["a function that returns something else", () => () => ({ query() {} }), /no prepare, no exec, no close/],
    ["a function that throws", () => () => new Database("/nowhere/at/all.db"), /could not open/],
  ])("refuses %s where a factory belongs", (_, make, message) => {
    const given = make(temporaryFile()) as never;
    for (const from of [fromLibsql, fromBetterSqlite3, fromNodeSqlite]) {
      expect(() => sqliteStore(from(given))).toThrow(expect.objectContaining(CONFIGURATION));
      expect(() => sqliteStore(from(given))).toThrow(message);
    }
  });

  it("refuses the application's own connection, which comes twice, and leaves it open", () => {
    const own = openConnection(temporaryFile());
    expect(() => sqliteStore(fromLibsql(() => own))).toThrow(/the same connection twice/);
    expect(own.prepare("SELECT 1 AS one").get([])).toMatchObject({ one: 1 });
  });

  it.each([":memory:", ""])("refuses a database without a file: %j", (path) => {
    expect(() => sqliteStore(fromLibsql(() => new Database(path)))).toThrow(/has no file.*memoryStore/);
  });

  it("refuses two files", () => {
    const paths = [temporaryFile(), temporaryFile()];
    expect(() => sqliteStore(fromLibsql(() => new Database(paths.pop() ?? "")))).toThrow(
      /two different files/,
    );
  });

  it("refuses what is no driver, and lists every wrong option at once", () => {
    expect(() => sqliteStore(new Database(temporaryFile()) as never)).toThrow(
      /the first argument is a driver/,
    );
    const options = {
      tablePrefix: "x; DROP",
      busyWaitMs: Number.NaN,
      sweepIntervalMs: -1,
      sychronous: "full",
    };
    const wrong = () =>
      sqliteStore(
        fromLibsql(() => new Database(temporaryFile())),
        options as never,
      );
    expect(wrong).toThrow(/tablePrefix/);
    expect(wrong).toThrow(/busyWaitMs/);
    expect(wrong).toThrow(/sweepIntervalMs/);
    expect(wrong).toThrow(/sychronous is not an option/);
  });

  it("sets both connections up: write-ahead log, FULL unless told otherwise, never a wait inside SQLite", async () => {
    for (const synchronous of ["full", "normal"] as const) {
      const path = temporaryFile();
      const clients: Database.Database[] = [];
      const open = () => {
        const client = new Database(path, { timeout: 5_000 });
        clients.push(client);
        return client;
      };
      const store = sqliteStore(fromLibsql(open), { synchronous });
      await store.claim(claimOf("a"));
      for (const client of clients) {
        expect(client.prepare("PRAGMA journal_mode").get([])).toMatchObject({ journal_mode: "wal" });
        expect(client.prepare("PRAGMA synchronous").get([])).toMatchObject({
          synchronous: synchronous === "full" ? 2 : 1,
        });
        expect(client.prepare("PRAGMA busy_timeout").get([])).toMatchObject({ timeout: 0 });
      }
      expect(store.traits.forgetsOn.powerLoss).toBe(synchronous === "normal");
      expect(store.warnings).toHaveLength(synchronous === "normal" ? 1 : 0);
      await store.close();
    }
  });
});

describe("the tables", () => {
  it("belong to a prefix: two stores in one file do not meet", async () => {
    const path = temporaryFile();
    const one = openStore(path, { tablePrefix: "one_" });
    const two = openStore(path, { tablePrefix: "two_" });
    expect(await one.claim(claimOf("a"))).toMatchObject({ kind: "claimed" });
    expect(await two.claim(claimOf("a"))).toMatchObject({ kind: "claimed" });
    const tables = openConnection(path)
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
      .all();
    expect(tables.map((row) => (row as { name: string }).name)).toEqual([
      "one_migrations",
      "one_records",
      "two_migrations",
      "two_records",
    ]);
  });

  it("are created once by stores that start together", async () => {
    const path = temporaryFile();
    const stores = Array.from({ length: 8 }, () => openStore(path));
    const claims = await Promise.all(stores.map((store) => store.claim(claimOf("a"))));
    expect(claims.filter(({ kind }) => kind === "claimed")).toHaveLength(1);
    expect(openConnection(path).prepare("SELECT version FROM oncekey_migrations").all()).toMatchObject([
      { version: 1 },
    ]);
  });

  it("are refused when a later version has migrated them", async () => {
    const path = temporaryFile();
    await openStore(path).claim(claimOf("a"));
    openConnection(path).exec("INSERT INTO oncekey_migrations VALUES (99, 0)");
    await expect(openStore(path).claim(claimOf("a"))).rejects.toMatchObject({
      ...CONFIGURATION,
      message: expect.stringContaining("version 99"),
    });
  });
});

describe("a file that fails", () => {
  it("is full: writes are refused, replays go on, and all is well once there is room", async () => {
    const path = temporaryFile();
    const clients: Database.Database[] = [];
    const store = sqliteStore(
      fromLibsql(() => {
        const client = new Database(path);
        clients.push(client);
        return client;
      }),
    );
    const limitPages = (pages: number) => {
      for (const client of clients) client.prepare(`PRAGMA max_page_count = ${pages}`).get([]);
    };
    const [done, held, other] = [claimOf("done"), claimOf("held"), claimOf("other")];
    await Promise.all([done, held, other].map((claim) => store.claim(claim)));
    await store.complete(completionOf(done));
    const large = new Uint8Array(200_000);
    // Never below what the file already has: from here on it cannot grow.
    limitPages(1);
    const [first, second, replay] = await Promise.allSettled([
      store.complete({ ...held, attempt: 1, outcome: { head: "{}", body: large } }),
      store.complete({ ...other, attempt: 1, outcome: { head: "{}", body: large } }),
      store.claim(claimOf("done")),
    ]);
    for (const refused of [first, second]) {
      expect(refused).toMatchObject({
        status: "rejected",
        reason: { code: "STORE_UNAVAILABLE", cause: { code: "SQLITE_FULL" } },
      });
    }
    expect(replay).toMatchObject({ status: "fulfilled", value: { kind: "completed" } });
    expect(await store.find(held.key)).toMatchObject({ state: "claimed", resultBytes: 0 });
    limitPages(1_000_000);
    expect(await store.complete({ ...held, attempt: 1, outcome: { head: "{}", body: large } })).toEqual({
      kind: "completed",
      how: "stored",
    });
    await store.close();
  });

  it("is no database: every call says so and nothing is changed", async () => {
    const path = temporaryFile();
    writeFileSync(path, "this is not a database, it is a letter to a friend".repeat(100));
    const store = openStore(path);
    await expect(store.claim(claimOf("a"))).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      cause: { code: "SQLITE_NOTADB" },
    });
    await expect(store.find(keyOf("a"))).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });

  it("is set up by the next call if the first could not", async () => {
    const path = temporaryFile();
    const other = openConnection(path);
    other.exec("PRAGMA journal_mode = wal; BEGIN IMMEDIATE");
    const store = openStore(path, { busyWaitMs: 50 });
    await expect(store.claim(claimOf("a"))).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    other.exec("ROLLBACK");
    expect(await store.claim(claimOf("a"))).toMatchObject({ kind: "claimed" });
  });
});

describe("a damaged row", () => {
  const damage = [
    ["an unknown format", "format = 2"],
    ["an unknown state", "state = 'paused'"],
    ["a completed record without a head", "head = NULL"],
    ["a time that is none", "claimed_at = -1"],
    ["a claim that would never end", "state = 'claimed', head = NULL, expires_at = NULL"],
    ["a reconciler without a lease", "reconciler_token = 'r'"],
    ["quoted text that is broken", `operation = '"abc'`],
  ] as const;

  it.each(damage)("with %s is unreadable, never absent, and harms nobody else", async (_, assignment) => {
    const path = temporaryFile();
    const store = openStore(path);
    const claim = claimOf("a");
    await store.claim(claim);
    await store.complete(completionOf(claim));
    openConnection(path).exec(`UPDATE oncekey_records SET ${assignment}`);
    const calls = [
      store.claim(claimOf("a")),
      store.complete(completionOf(claim)),
      store.extend(claim),
      store.find(claim.key),
    ];
    const others = Promise.all(["b", "c"].map((name) => store.claim(claimOf(name))));
    for (const outcome of await Promise.allSettled(calls)) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "RECORD_UNREADABLE" } });
    }
    expect(await others).toMatchObject([{ kind: "claimed" }, { kind: "claimed" }]);
    expect(await store.status([claim.key])).toEqual([{ state: "lapsed", holder: undefined }]);
    const first = await store.list({ limit: 2 });
    expect(first).toMatchObject({ records: [{ key: keyOf("b") }], unreadable: [claim.key] });
    const rest = await store.list({ limit: 2, cursor: first.cursor });
    expect(rest).toEqual({ records: [expect.objectContaining({ key: keyOf("c") })], cursor: undefined });
  });
});

describe("text and bytes", () => {
  it.each([
    ["NUL", "a\0b"],
    ["a lone surrogate", "a\ud800b"],
    ["quotes first", '"quoted"'],
    ["nothing", ""],
    ["other scripts", "Größe 漢字 🦀"],
  ])("come back as they went in: %s", async (_, text) => {
    const store = openStore(temporaryFile());
    const claim = claimOf("a", { operation: text, label: text });
    const outcome = { head: text, body: Uint8Array.from({ length: 256 }, (_value, index) => index) };
    await store.claim(claim);
    await store.complete({ ...claim, attempt: 1, outcome });
    expect(await store.find(claim.key)).toMatchObject({ operation: text, label: text, resultBytes: 256 });
    expect(await store.claim({ ...claim, token: claimOf("a").token })).toMatchObject({
      kind: "completed",
      outcome,
    });
    expect((await store.list({ operation: text, limit: 1 })).records).toHaveLength(1);
  });

  it("an empty body is a body, and no body is a tombstone", async () => {
    const store = openStore(temporaryFile());
    for (const [name, body] of [
      ["empty", new Uint8Array()],
      ["none", undefined],
    ] as const) {
      const claim = claimOf(name);
      await store.claim(claim);
      await store.complete({ ...claim, attempt: 1, outcome: { head: "{}", body } });
      expect(await store.claim(claimOf(name))).toMatchObject({
        kind: "completed",
        outcome: { head: "{}", body },
      });
      expect(await store.find(claim.key)).toMatchObject({ tombstone: body === undefined, resultBytes: 0 });
    }
  });
});

describe("closing", () => {
  it("finishes what is queued, then rejects, and leaves a file that is whole without its log", async () => {
    const path = temporaryFile();
    const store = openStore(path);
    await store.claim(claimOf("warm"));
    const claims = Array.from({ length: 200 }, (_, index) => store.claim(claimOf(`k${index}`)));
    await Promise.all([store.close(), store.close()]);
    expect((await Promise.all(claims)).every(({ kind }) => kind === "claimed")).toBe(true);
    await expect(store.claim(claimOf("late"))).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await expect(store.find(keyOf("k1"))).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await expect(store.purge(1)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await store.close();
    const copy = temporaryFile();
    copyFileSync(path, copy);
    expect(await openStore(copy).find(keyOf("k199"))).toMatchObject({ state: "claimed" });
  });
});
