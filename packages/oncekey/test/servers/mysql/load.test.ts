/**
 * Many callers, few keys and many: no deadlock and no ended wait reaches anybody, since no statement of the store waits for a row.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { MysqlStore } from "oncekey/stores/mysql";
import { expect, it } from "vitest";
import type { ClaimRequest } from "../../../src/core/store.js";
import { claimRequest, repeatOf } from "../../../src/testing/requests.js";
import { mariadbUrl } from "../support/servers.js";
import { completionOf, openPool, openStore } from "./fixture.js";

const url = await mariadbUrl();

/** One caller's turn on a key: whatever it is allowed to do, it does. */
async function turn(store: MysqlStore, request: ClaimRequest, starts: Map<string, number>): Promise<void> {
  const answer = await store.claim(request);
  if (answer.kind !== "claimed") return;
  const { key, token } = request;
  starts.set(key, (starts.get(key) ?? 0) + 1);
  await store.extend(request);
  if (Math.random() < 0.3) {
    await store.release({ key, token, started: true, keepAttempts: false, code: undefined });
    starts.set(key, (starts.get(key) ?? 0) - 1);
  } else {
    await store.complete(completionOf(request, "done", answer.attempt));
  }
}

it.each([
  ["few", 8],
  ["many", 2_000],
])("%s keys, 64 callers on each of three processes: nobody hears of a deadlock", async (_, keys) => {
  const { store, another } = await openStore(url);
  const stores = [store, another(), another()];
  const requests = Array.from({ length: keys }, () => claimRequest());
  const starts = new Map<string, number>();
  const callers = Array.from({ length: 192 }, async (__, caller) => {
    const own = stores[caller % stores.length] as MysqlStore;
    for (let n = 0; n < 20; n += 1) {
      const request = requests[Math.floor(Math.random() * keys)] as ClaimRequest;
      await turn(own, repeatOf(request), starts);
    }
  });
  const purges = stores.map(async (one) => {
    for (let n = 0; n < 20; n += 1) await one.purge(50);
  });
  const results = await Promise.allSettled([...callers, ...purges]);
  expect(results.filter(({ status }) => status === "rejected")).toEqual([]);
  expect([...starts.values()].every((count) => count <= 1)).toBe(true);
});

it("takeovers of many at once, by three processes, exclude each other", async () => {
  const { store, another } = await openStore(url);
  const stores = [store, another(), another()];
  const requests = Array.from({ length: 60 }, () => claimRequest({ leaseMs: 100 }));
  await Promise.all(requests.map((request) => store.claim(request)));
  await sleep(150);
  const answers = await Promise.all(
    requests.map((request) =>
      Promise.all(stores.map((one) => one.claim(repeatOf(request, { leaseMs: 30_000 })))),
    ),
  );
  for (const own of answers) expect(own.filter(({ kind }) => kind === "claimed")).toHaveLength(1);
});

it("a key that somebody has locked delays nobody else", async () => {
  const { store, records } = await openStore(url);
  const pool = openPool(url);
  const [locked, held] = [claimRequest(), claimRequest()];
  await store.claim(locked);
  const connection = await pool.getConnection();
  await connection.beginTransaction();
  await connection.query(`SELECT 1 FROM ${records} WHERE \`key\` = ? FOR UPDATE`, [locked.key]);
  await store.claim(held);
  const stuck = store.complete(completionOf(locked));
  const others = await Promise.race([
    Promise.all([
      store.complete(completionOf(held)),
      store.claim(repeatOf(locked)),
      ...Array.from({ length: 50 }, () => store.claim(claimRequest())),
    ]),
    sleep(1_000),
  ]);
  expect(others).toMatchObject([
    { kind: "completed" },
    { kind: "in-flight", holder: locked.token },
    ...Array.from({ length: 50 }, () => ({ kind: "claimed" })),
  ]);
  await connection.rollback();
  connection.release();
  await expect(stuck).resolves.toMatchObject({ kind: "completed" });
});

it("a purge goes around what is pinned", async () => {
  const { store } = await openStore(url);
  const pool = openPool(url);
  const [pinned, free] = [claimRequest, claimRequest].map((make) => make({ leaseMs: 400, retentionMs: 1 }));
  if (pinned === undefined || free === undefined) throw new Error("There are two");
  await Promise.all([store.claim(pinned), store.claim(free)]);
  const connection = await pool.getConnection();
  await connection.beginTransaction();
  expect(await store.pin?.(connection, { ...pinned, waitMs: 100 })).toEqual({ kind: "pinned" });
  await sleep(450);
  expect(await store.purge(10)).toBe(1);
  await connection.rollback();
  connection.release();
  expect(await store.purge(10)).toBe(1);
});

it("a record made anew under the same key is not taken for the one that was read", async () => {
  const { store, records } = await openStore(url);
  const pool = openPool(url);
  const first = claimRequest();
  const revision = async () => {
    const [rows] = await pool.query(`SELECT CONCAT(revision) AS revision FROM ${records}`);
    return (rows as { readonly revision: string }[])[0]?.revision;
  };
  await store.claim(first);
  const before = await revision();
  await store.release({ ...first, started: true, keepAttempts: false, code: undefined });
  await store.claim(repeatOf(first));
  expect(await revision()).not.toBe(before);
});
