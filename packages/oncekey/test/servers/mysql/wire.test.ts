import { setTimeout as sleep } from "node:timers/promises";
import { createIdempotency } from "oncekey";
import { expect, it } from "vitest";
import { claimRequest, repeatOf } from "../../../src/testing/requests.js";
import { faultProxy } from "../support/fault-proxy.js";
import { mariadbUrl } from "../support/servers.js";
import { beginWork, completionOf, openPool, openRows, openStore, resultOf } from "./fixture.js";

const url = await mariadbUrl();

async function behindProxy() {
  const opened = await openStore(url);
  const proxy = await faultProxy(url);
  const store = opened.another({ connections: 1 }, proxy.url);
  await store.claim(claimRequest());
  const tripsOf = async (call: () => Promise<unknown>): Promise<number> => {
    proxy.resetCounts();
    await call();
    return proxy.counts().roundTrips;
  };
  return { ...opened, store, proxy, tripsOf };
}

it("one round trip claims, renews, completes, replays, refuses and releases; sixty-four claims share one", async () => {
  const { store, proxy, tripsOf } = await behindProxy();
  const [request, other] = [claimRequest(), claimRequest()];
  expect(await tripsOf(() => store.claim(request))).toBe(1);
  expect(await tripsOf(() => store.claim(repeatOf(request)))).toBe(1);
  expect(await tripsOf(() => store.extend(request))).toBe(1);
  expect(await tripsOf(() => store.complete(completionOf(request)))).toBe(1);
  expect(await tripsOf(() => store.claim(repeatOf(request)))).toBe(1);
  await store.claim(other);
  const release = { started: true, keepAttempts: false, code: undefined };
  expect(await tripsOf(() => store.release({ ...other, ...release }))).toBe(1);
  const many = Array.from({ length: 64 }, () => claimRequest());
  expect(await tripsOf(() => Promise.all(many.map((one) => store.claim(one))))).toBe(1);
  await store.close();
  await proxy.close();
});

it("exactly-once work costs two round trips beside its claim and its own statements", async () => {
  const { store, proxy, tripsOf } = await behindProxy();
  const rows = await openRows(openPool(url));
  for (const expected of [undefined, 3]) {
    const { request, session } = await beginWork(store);
    const trips = await tripsOf(async () => {
      await session.handle.query(rows.insert, [request.key]);
      await session.commit(resultOf("done"), "everything");
    });
    // The first one opens its connection.
    if (expected !== undefined) expect(trips).toBe(expected);
  }
  await store.close();
  await proxy.close();
});

it.each(["before", "after"])(
  "a claim whose connection is cut %s it arrived is claimed by its own token",
  async (when) => {
    const { store, proxy } = await behindProxy();
    const request = claimRequest();
    const isClaim = (bytes: Buffer): boolean => bytes.includes("INSERT IGNORE");
    const cut = when === "before" ? proxy.cutBeforeNext(isClaim) : proxy.cutAfterNext(isClaim);
    const [answer] = await Promise.all([store.claim(request), cut]);
    expect(answer).toMatchObject({ kind: "claimed", attempt: 1 });
    await store.close();
    await proxy.close();
  },
);

it("a call that was given up does not land later", async () => {
  const opened = await openStore(url);
  const proxy = await faultProxy(url);
  const store = opened.another({ connections: 1, timeoutMs: 300 }, proxy.url);
  await store.claim(claimRequest());
  proxy.stall();
  const request = claimRequest();
  await expect(store.claim(request)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  proxy.cutAll();
  proxy.flow();
  await sleep(300);
  expect(await opened.store.find(request.key)).toBeUndefined();
  await store.close();
  await proxy.close();
});

it("a thousand waiters over two processes cost fewer than twenty round trips", async () => {
  const opened = await openStore(url);
  const sides = await Promise.all(
    [1, 2].map(async () => {
      const proxy = await faultProxy(url);
      const store = opened.another({}, proxy.url);
      const idempotency = createIdempotency({ store });
      await store.claim(claimRequest());
      return { proxy, store, idempotency };
    }),
  );
  const options = { operation: "charge", scope: "global", key: "one", input: 1 } as const;
  const leader = createIdempotency({ store: opened.store });
  let runs = 0;
  const work = async (): Promise<string> => {
    runs += 1;
    await sleep(400);
    return "done";
  };
  const first = leader.run(options, work);
  await sleep(50);
  for (const { proxy } of sides) proxy.resetCounts();
  const waiters = sides.flatMap(({ idempotency }) =>
    Array.from({ length: 500 }, () => idempotency.run(options, work)),
  );
  const results = await Promise.all([first, ...waiters]);
  const trips = sides.reduce((sum, { proxy }) => sum + proxy.counts().roundTrips, 0);
  expect(new Set(results)).toEqual(new Set(["done"]));
  expect(runs).toBe(1);
  expect(trips).toBeLessThan(20);
  await Promise.all([leader, ...sides.map(({ idempotency }) => idempotency)].map((one) => one.close()));
  for (const { proxy, store } of sides) {
    await store.close();
    await proxy.close();
  }
});
