import Database from "libsql";
import { fromLibsql, sqliteStore } from "oncekey/stores/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { claimOf, completionOf, keyOf, openConnection, openStore, temporaryFile } from "./sqlite-fixture.js";

/** A store, and every statement outside a prepared one that its connections run. */
function openObserved(path: string) {
  const executed: string[] = [];
  const open = () => {
    const client = new Database(path);
    const exec = client.exec.bind(client);
    client.exec = (sql) => {
      executed.push(sql);
      return exec(sql);
    };
    return client;
  };
  const store = sqliteStore(fromLibsql(open), { sweepIntervalMs: 0 });
  onTestFinished(() => store.close());
  const commits = () => executed.filter((sql) => sql === "COMMIT").length;
  return { store, commits };
}

/** How often the event loop turned while `work` ran. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let running = true;
  const turn = (): void => {
    turns += 1;
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  running = false;
  return turns;
}

describe("writes of one turn of the event loop", () => {
  it("are committed together, 64 at a time", async () => {
    const { store, commits } = openObserved(temporaryFile());
    await store.claim(claimOf("warm"));
    const before = commits();
    const claims = Array.from({ length: 130 }, (_, index) => store.claim(claimOf(`k${index}`)));
    expect((await Promise.all(claims)).every(({ kind }) => kind === "claimed")).toBe(true);
    expect(commits() - before).toBe(3);
  });

  it("are committed in smaller parts when their results are large", async () => {
    const { store, commits } = openObserved(temporaryFile());
    const claims = Array.from({ length: 4 }, (_, index) => claimOf(`k${index}`));
    await Promise.all(claims.map((claim) => store.claim(claim)));
    const before = commits();
    const body = new Uint8Array(700 * 1024);
    await Promise.all(
      claims.map((claim) => store.complete({ ...claim, attempt: 1, outcome: { head: "{}", body } })),
    );
    expect(commits() - before).toBe(4);
  });

  it("keep their order on one key", async () => {
    const store = openStore(temporaryFile());
    const [mine, other] = [claimOf("a"), claimOf("a")];
    await store.claim(mine);
    const calls = [
      store.complete(completionOf(mine)),
      store.claim(other),
      store.extend(mine),
      store.release({
        key: mine.key,
        token: mine.token,
        started: true,
        keepAttempts: false,
        code: undefined,
      }),
    ];
    expect((await Promise.all(calls)).map(({ kind }) => kind)).toEqual([
      "completed",
      "completed",
      "completed",
      "completed",
    ]);
  });

  it("fail alone: a value that SQLite cannot take, a record that cannot be read", async () => {
    const path = temporaryFile();
    const store = openStore(path);
    const claims = Array.from({ length: 20 }, (_, index) => claimOf(`k${index}`));
    await Promise.all(claims.map((claim) => store.claim(claim)));
    openConnection(path).exec(`UPDATE oncekey_records SET state = 'odd' WHERE key = '${keyOf("k7")}'`);
    const completions = claims.map((claim, index) => {
      const completion = completionOf(claim);
      return store.complete(
        index === 3 ? { ...completion, attempt: Number.NaN, retentionMs: Number.NaN } : completion,
      );
    });
    const outcomes = await Promise.allSettled(completions);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(18);
    expect(outcomes[3]).toMatchObject({ status: "rejected" });
    expect(outcomes[7]).toMatchObject({ status: "rejected", reason: { code: "RECORD_UNREADABLE" } });
    expect(await store.find(keyOf("k3"))).toMatchObject({ state: "claimed" });
  });

  it("are bounded: what is too much is refused at once, and the rest is answered", async () => {
    const store = openStore(temporaryFile());
    await store.claim(claimOf("warm"));
    const calls = Array.from({ length: 10_050 }, () => store.extend(claimOf("a")));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(50);
    expect(outcomes[10_049]).toMatchObject({ reason: { code: "STORE_UNAVAILABLE" } });
    expect(await store.claim(claimOf("b"))).toMatchObject({ kind: "claimed" });
  });
});

describe("while another connection writes", () => {
  it("waits without blocking the event loop, and writes when the file is free", async () => {
    const path = temporaryFile();
    const store = openStore(path);
    await store.claim(claimOf("warm"));
    const other = openConnection(path);
    other.exec("BEGIN IMMEDIATE");
    let turns = 0;
    const ticking = setInterval(() => {
      turns += 1;
    }, 1);
    const claim = store.claim(claimOf("a"));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(turns).toBeGreaterThan(10);
    other.exec("COMMIT");
    expect(await claim).toMatchObject({ kind: "claimed" });
    clearInterval(ticking);
  });

  it("gives up after busyWaitMs, having changed nothing", async () => {
    const path = temporaryFile();
    const store = openStore(path, { busyWaitMs: 60 });
    const held = claimOf("held");
    await store.claim(held);
    const other = openConnection(path);
    other.exec("BEGIN IMMEDIATE");
    const calls = [store.claim(claimOf("a")), store.complete(completionOf(held)), store.purge(10)];
    for (const outcome of await Promise.allSettled(calls)) {
      expect(outcome).toMatchObject({
        status: "rejected",
        reason: { code: "STORE_UNAVAILABLE", cause: { code: "SQLITE_BUSY" } },
      });
    }
    other.exec("COMMIT");
    expect(await store.find(keyOf("a"))).toBeUndefined();
    expect(await store.find(held.key)).toMatchObject({ state: "claimed" });
  });

  it("goes on answering whatever only has to be read", async () => {
    const path = temporaryFile();
    const store = openStore(path);
    const [done, held, reused] = [claimOf("done"), claimOf("held"), claimOf("reused")];
    await Promise.all([done, held, reused].map((claim) => store.claim(claim)));
    await store.complete(completionOf(done));
    openConnection(path).exec("BEGIN IMMEDIATE");
    expect(await store.claim(claimOf("done"))).toMatchObject({ kind: "completed" });
    expect(await store.claim(claimOf("held"))).toMatchObject({ kind: "in-flight", holder: held.token });
    expect(await store.claim(claimOf("reused", { fingerprint: done.fingerprint }))).toMatchObject({
      kind: "mismatch",
    });
    expect(await store.status([done.key, held.key])).toMatchObject([
      { state: "completed" },
      { state: "claimed" },
    ]);
    expect((await store.list({ limit: 10 })).records).toHaveLength(3);
  });
});

describe("a large file", () => {
  it("does not stop the event loop: purge, list and a burst of claims go in slices", async () => {
    const path = temporaryFile();
    const store = openStore(path, { synchronous: "normal" });
    await store.claim(claimOf("warm"));
    openConnection(path).exec(`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
      INSERT INTO oncekey_records (format, key, scope_id, operation, state, token, attempt, fingerprint, guarantee,
        on_lapse, lease_ms, retention_ms, claimed_at, changed_at, lease_ends_at, expires_at, head)
      SELECT 1, 'key' || i, 's', 'o', 'completed', 't', 1, 'v1:x', 'at-least-once', 'takeover', 1, 1, 1, 1, 1, 1 + i % 2 * 9e12, '{}'
      FROM n`);
    const turns = await turnsDuring(async () => {
      const [page, removed] = await Promise.all([
        store.list({ scopeId: claimOf("x").scopeId, state: "completed", limit: 5 }),
        store.purge(30_000),
        ...Array.from({ length: 500 }, (_, index) => store.claim(claimOf(`k${index}`))),
      ]);
      expect(page).toEqual({ records: [], cursor: undefined });
      expect(removed).toBe(25_000);
    });
    // 250 slices of the purge and 50 of the page, some of them in one turn.
    expect(turns).toBeGreaterThan(250);
  });

  it("uses its indices: no call reads the table from end to end", async () => {
    const path = temporaryFile();
    await openStore(path).claim(claimOf("warm"));
    const connection = openConnection(path);
    const plan = (sql: string) =>
      connection
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all([])
        .map((row) => (row as { detail: string }).detail)
        .join("; ");
    const records = "oncekey_records";
    expect(plan(`SELECT * FROM ${records} WHERE key = 'x'`)).toContain("SEARCH");
    expect(plan(`SELECT id FROM ${records} WHERE expires_at <= 5 ORDER BY expires_at LIMIT 5`)).toContain(
      "records_expires",
    );
    expect(
      plan(
        `SELECT id FROM ${records} WHERE id > 5 AND state <> 'completed' AND state = 'unknown' ORDER BY id LIMIT 5`,
      ),
    ).toContain("records_unfinished");
  });
});
