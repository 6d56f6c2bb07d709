import type { SqliteTransaction } from "oncekey/stores/sqlite";
import { manualClock } from "oncekey/testing";
import { describe, expect, it, vi } from "vitest";
import type { ClaimRequest, Store } from "../../src/core/store.js";
import {
  claimOf,
  completionOf,
  openConnection,
  openStore,
  resultOf,
  temporaryFile,
  transactionOf,
} from "./sqlite-fixture.js";

function releaseOf({ key, token }: ClaimRequest) {
  return { key, token, started: true, keepAttempts: false, code: undefined };
}

/** Watches `key` and tells when it was woken. */
function watching(store: Store, key: ClaimRequest["key"]) {
  const wake = vi.fn();
  const watch = store.watch?.(key, wake);
  return {
    wake,
    close: () => watch?.close(),
    woken: () => vi.waitFor(() => expect(wake).toHaveBeenCalled(), 2_000),
  };
}

describe("watch", () => {
  const endings: [name: string, end: (store: Store<SqliteTransaction>, claim: ClaimRequest) => unknown][] = [
    ["a completion", (store, claim) => store.complete(completionOf(claim))],
    ["a release", (store, claim) => store.release(releaseOf(claim))],
    ["an unknown outcome", (store, claim) => store.markUnknown({ ...claim, attempt: 1, code: undefined })],
    [
      "an exactly-once commit",
      async (store, claim) => {
        const session = store.begin?.(transactionOf(claim));
        await session?.handle.exec("CREATE TABLE t (x)");
        await session?.commit(resultOf("done"), "everything");
      },
    ],
  ];

  it.each(endings)("wakes by %s, of this store and of another one on the file", async (_, end) => {
    const path = temporaryFile();
    const [own, other] = [openStore(path), openStore(path)];
    await Promise.all([own.claim(claimOf("warm")), other.claim(claimOf("warm"))]);
    const [claim, quiet] = [claimOf("a"), claimOf("quiet")];
    await own.claim(claim);
    await own.claim(quiet);
    const watches = [watching(own, claim.key), watching(other, claim.key)];
    const unconcerned = watching(other, quiet.key);
    await end(own, claim);
    await Promise.all(watches.map(({ woken }) => woken()));
    expect(unconcerned.wake).not.toHaveBeenCalled();
    for (const { close } of [...watches, unconcerned]) close();
  });

  it("sees what is written between the registration and the first look", async () => {
    const path = temporaryFile();
    const [own, other] = [openStore(path), openStore(path)];
    const claim = claimOf("a");
    await other.claim(claim);
    await own.claim(claimOf("warm"));
    const { woken } = watching(own, claim.key);
    await other.complete(completionOf(claim));
    await woken();
  });

  it("wakes once for one change, each registration on its own, and never after it was closed", async () => {
    const path = temporaryFile();
    const [own, other] = [openStore(path), openStore(path)];
    const claim = claimOf("a");
    await other.claim(claim);
    await own.claim(claimOf("warm"));
    const [kept, closed] = [watching(own, claim.key), watching(own, claim.key)];
    closed.close();
    closed.close();
    await other.complete(completionOf(claim));
    await kept.woken();
    for (const name of ["b", "c", "d"]) {
      await other.claim(claimOf(name));
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    expect(kept.wake).toHaveBeenCalledTimes(1);
    expect(closed.wake).not.toHaveBeenCalled();
  });

  it("survives a waiter that throws", async () => {
    const store = openStore(temporaryFile());
    const claim = claimOf("a");
    await store.claim(claim);
    store.watch?.(claim.key, () => {
      throw new Error("a waiter's own fault");
    });
    const { woken } = watching(store, claim.key);
    expect(await store.complete(completionOf(claim))).toEqual({ kind: "completed", how: "stored" });
    await woken();
  });

  it("wakes whoever waits for a record that cannot be read, and keeps nobody else asleep", async () => {
    const path = temporaryFile();
    const [own, other] = [openStore(path), openStore(path)];
    const [damaged, sound] = [claimOf("damaged"), claimOf("sound")];
    for (const claim of [damaged, sound]) await other.claim(claim);
    await own.claim(claimOf("warm"));
    const watches = [damaged, sound].map(({ key }) => watching(own, key));
    openConnection(path).exec(`UPDATE oncekey_records SET format = 2 WHERE key = '${damaged.key}'`);
    await other.complete(completionOf(sound));
    await Promise.all(watches.map(({ woken }) => woken()));
  });

  it("reads many watched keys together, and finds each", async () => {
    const path = temporaryFile();
    const [own, other] = [openStore(path), openStore(path)];
    await own.claim(claimOf("warm"));
    const claims = Array.from({ length: 1_200 }, (_, index) => claimOf(`k${index}`));
    await Promise.all(claims.map((claim) => other.claim(claim)));
    const watches = claims.map(({ key }) => watching(own, key));
    const ended = [0, 600, 1_199].flatMap((index) => claims[index] ?? []);
    await Promise.all(ended.map((claim) => other.complete(completionOf(claim))));
    await Promise.all([0, 600, 1_199].map((index) => watches[index]?.woken()));
    expect(watches.filter(({ wake }) => wake.mock.calls.length > 0)).toHaveLength(3);
  });
});

describe("leases by the wall clock", () => {
  const takeover = (store: Store, name: string) => store.claim(claimOf(name));

  it("lapse when their time is over, for every store on the file", async () => {
    const [path, clock] = [temporaryFile(), manualClock()];
    const [one, two] = [openStore(path, { clock }), openStore(path, { clock })];
    await one.claim(claimOf("a"));
    await clock.advance(29_999);
    expect(await takeover(two, "a")).toMatchObject({ kind: "in-flight", remainingMs: 1 });
    await clock.advance(1);
    expect(await takeover(two, "a")).toMatchObject({ kind: "claimed", attempt: 2, takeover: true });
  });

  it("are not judged for one lease after the clock was set forward, so that a live holder can extend", async () => {
    const clock = manualClock();
    const store = openStore(temporaryFile(), { clock });
    const [alive, dead] = [claimOf("alive"), claimOf("dead")];
    await store.claim(alive);
    await store.claim(dead);
    clock.jump(3_600_000);
    expect(await takeover(store, "alive")).toMatchObject({ kind: "in-flight" });
    expect(await store.purge(100)).toBe(0);
    expect(await store.status([alive.key])).toMatchObject([{ state: "claimed" }]);
    expect(await store.extend(alive)).toEqual({ kind: "extended" });
    await clock.advance(29_999);
    expect(await takeover(store, "dead")).toMatchObject({ kind: "in-flight", remainingMs: 1 });
    expect(await store.extend(alive)).toEqual({ kind: "extended" });
    await clock.advance(1);
    expect(await takeover(store, "dead")).toMatchObject({ kind: "claimed", takeover: true });
    expect(await takeover(store, "alive")).toMatchObject({ kind: "in-flight" });
  });

  it("that end further away than they are long were written before the clock was set back", async () => {
    const [path, clock] = [temporaryFile(), manualClock()];
    const store = openStore(path, { clock });
    await store.claim(claimOf("a"));
    clock.jump(-3_600_000);
    expect(await takeover(store, "a")).toMatchObject({ kind: "in-flight", remainingMs: 30_000 });
    await clock.advance(30_000);
    expect(await takeover(store, "a")).toMatchObject({ kind: "claimed", takeover: true });
    await openStore(path, { clock }).claim(claimOf("warm"));
    clock.jump(-3_600_000);
    const later = openStore(path, { clock });
    expect(await takeover(later, "a")).toMatchObject({ kind: "claimed", takeover: true });
  });

  it("tolerate what a time server corrects", async () => {
    const [path, clock] = [temporaryFile(), manualClock()];
    await openStore(path, { clock }).claim(claimOf("a"));
    clock.jump(-900);
    expect(await takeover(openStore(path, { clock }), "a")).toMatchObject({ kind: "in-flight" });
  });
});

describe("purge", () => {
  it("removes expired records of every kind, and neither unknown ones nor live claims", async () => {
    const [path, clock] = [temporaryFile(), manualClock()];
    const store = openStore(path, { clock });
    const retentionMs = 60_000;
    const [done, dead, live, lost, freed] = ["done", "dead", "live", "lost", "freed"].map((name) =>
      claimOf(name, { retentionMs }),
    );
    for (const claim of [done, dead, lost, freed]) if (claim) await store.claim(claim);
    if (!done || !lost || !freed || !live || !dead) throw new Error("unreachable");
    await store.complete(completionOf(done));
    await store.markUnknown({ ...lost, attempt: 1, code: "TIMEOUT" });
    await store.release({ ...releaseOf(freed), keepAttempts: true });
    await clock.advance(60_000);
    await store.claim(live);
    expect(await store.purge(1)).toBe(1);
    expect(await store.purge(100)).toBe(1);
    await clock.advance(29_999);
    await store.extend(live);
    expect(await store.purge(100)).toBe(0);
    await clock.advance(1);
    expect(await store.purge(100)).toBe(1);
    await clock.advance(60_000);
    await store.extend(live);
    expect(await store.purge(100)).toBe(0);
    const rows = openConnection(path).prepare("SELECT key FROM oncekey_records ORDER BY id").all([]);
    expect(rows).toEqual([{ key: lost.key }, { key: live.key }]);
  });

  it("happens by itself, unless it is turned off", async () => {
    for (const sweepIntervalMs of [1_000, 0]) {
      const clock = manualClock();
      const store = openStore(temporaryFile(), { clock, sweepIntervalMs });
      const claim = claimOf("a", { retentionMs: 500 });
      await store.claim(claim);
      await store.complete(completionOf(claim));
      await clock.advance(1_000);
      await store.claim(claimOf("b"));
      expect(clock.pending()).toBe(sweepIntervalMs === 0 ? 0 : 1);
      expect(await store.purge(10)).toBe(sweepIntervalMs === 0 ? 1 : 0);
    }
  });
});

describe("list", () => {
  it("pages in the order of first sight, also while records change", async () => {
    const store = openStore(temporaryFile());
    const claims = Array.from({ length: 7 }, (_, index) => claimOf(`k${index}`));
    for (const claim of claims) await store.claim(claim);
    const first = await store.list({ limit: 3 });
    if (claims[1]) await store.complete(completionOf(claims[1]));
    if (claims[5]) await store.complete(completionOf(claims[5]));
    const second = await store.list({ limit: 3, cursor: first.cursor });
    const third = await store.list({ limit: 3, cursor: second.cursor });
    expect([first, second, third].flatMap(({ records }) => records.map(({ key }) => key))).toEqual(
      claims.map(({ key }) => key),
    );
    expect(third.cursor).toBeUndefined();
    expect((await store.list({ limit: 7 })).cursor).toBeUndefined();
  });

  it("tells the kinds of record apart", async () => {
    const clock = manualClock();
    const store = openStore(temporaryFile(), { clock });
    const [done, lapsed, lost, live] = [
      claimOf("done", { operation: "other" }),
      claimOf("lapsed"),
      claimOf("lost"),
      claimOf("live"),
    ];
    for (const claim of [done, lapsed, lost]) await store.claim(claim);
    await store.complete(completionOf(done, "four"));
    await store.markUnknown({ ...lost, attempt: 1, code: "TIMEOUT" });
    await clock.advance(30_000);
    await store.claim(live);
    const keys = async (request: object) =>
      (await store.list({ limit: 10, ...request })).records.map(({ key }) => key);
    expect(await keys({ state: "claimed" })).toEqual([lapsed.key, live.key]);
    expect(await keys({ state: "lapsed" })).toEqual([lapsed.key]);
    expect(await keys({ state: "unknown" })).toEqual([lost.key]);
    expect(await keys({ state: "completed" })).toEqual([done.key]);
    expect(await keys({ operation: "other" })).toEqual([done.key]);
    expect(await keys({ scopeId: "nobody" })).toEqual([]);
    expect(await keys({ olderThanMs: 1 })).toEqual([done.key, lapsed.key, lost.key]);
    expect((await store.list({ limit: 1 })).records[0]).toMatchObject({ resultBytes: 4, tombstone: false });
  });

  it.each([{ limit: 0 }, { limit: 1_001 }, { limit: 1.5 }, { limit: 1, cursor: "1; DROP" }])(
    "refuses %o",
    async (request) => {
      const store = openStore(temporaryFile());
      await expect(store.list(request)).rejects.toMatchObject({ code: "CONFIGURATION_INVALID" });
    },
  );
});
