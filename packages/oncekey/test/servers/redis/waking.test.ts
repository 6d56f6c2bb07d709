import { createIdempotency, type IdempotencyEvent } from "oncekey";
import { describe, expect, it, onTestFinished } from "vitest";
import { faultProxy } from "../support/fault-proxy.js";
import { ownServer, redisUrl } from "../support/servers.js";
import { claimOf, completionOf, FAMILIES, openStore, outsider, until } from "./fixture.js";

const url = await redisUrl();

describe.each(FAMILIES)("waking, with %s", (family) => {
  it("comes with the change, in another process's store, within milliseconds", async () => {
    const [store, other] = [
      openStore(family, url, { prefix: "w:" }),
      openStore(family, url, { prefix: "w:" }),
    ];
    const claim = claimOf();
    await store.claim(claim);
    let wokenAtMs = 0;
    other.watch?.(claim.key, () => {
      wokenAtMs = performance.now();
    });
    await until(
      async () => (await outsider(url).pubsub("SHARDNUMSUB", `w:${claim.key}`))[1] === 1,
      "listening",
    );
    const completedAtMs = performance.now();
    await store.complete(completionOf(claim));
    await until(() => wokenAtMs > 0, "the wake-up", 1_000);
    expect(wokenAtMs - completedAtMs).toBeLessThan(200);
  });

  it("comes to whoever watches at the moment that another has stopped", async () => {
    const prefix = `again-${family}:`;
    const [store, other] = [openStore(family, url, { prefix }), openStore(family, url, { prefix })];
    const claim = claimOf();
    await other.claim(claim);
    const first = store.watch?.(claim.key, () => undefined);
    const channel = `${prefix}${claim.key}`;
    const redis = outsider(url);
    await until(async () => (await redis.pubsub("SHARDNUMSUB", channel))[1] === 1, "listening");
    first?.close();
    let wakeUps = 0;
    store.watch?.(claim.key, () => {
      wakeUps += 1;
    });
    // What was asked of the server until now is behind it.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(wakeUps).toBe(0);
    await other.complete(completionOf(claim));
    await until(() => wakeUps > 0, "the wake-up", 2_000);
  });

  it("what was published while the subscriber was away is found by one reading", async () => {
    const server = await ownServer("redis");
    onTestFinished(server.close);
    const store = openStore(family, server.url);
    const redis = outsider(server.url);
    const [done, running] = [claimOf(), claimOf()];
    const woken: string[] = [];
    for (const [name, claim] of Object.entries({ done, running })) {
      await store.claim(claim);
      store.watch?.(claim.key, () => woken.push(name));
    }
    await until(async () => (await redis.pubsub("SHARDCHANNELS")).length === 2, "both subscriptions");
    await redis.call("CLIENT", "KILL", "TYPE", "pubsub");
    await store.complete(completionOf(done));
    await until(() => woken.includes("done"), "the wake-up");
    await until(async () => (await redis.pubsub("SHARDCHANNELS")).length === 2, "both subscriptions again");
    expect(woken).not.toContain("running");
  });

  it("the core's fallback finds what no wake-up told", async () => {
    const proxy = await faultProxy(url);
    onTestFinished(proxy.close);
    const redis = outsider(url);
    await redis.acl(
      "SETUSER",
      `deaf-${family}`,
      "on",
      ">secret",
      "~*",
      "resetchannels",
      "+@all",
      "-ssubscribe",
    );
    const deaf = url.replace("redis://", `redis://deaf-${family}:secret@`);
    const prefix = `deaf-${family}:`;
    const [leader, waiter] = [openStore(family, url, { prefix }), openStore(family, deaf, { prefix })];
    const here = createIdempotency({ store: leader, scope: "global" });
    const there = createIdempotency({ store: waiter, scope: "global" });
    const options = { operation: "charge", key: "k", input: 1 } as const;
    let finish = (): void => undefined;
    const first = here.run(
      options,
      () => new Promise<string>((resolve) => (finish = () => resolve("receipt"))),
    );
    await until(async () => (await redis.keys(`${prefix}*`)).length === 1, "the claim");
    const repeat = there.run(options, () => "a second run");
    await new Promise((resolve) => setTimeout(resolve, 100));
    finish();
    expect(await Promise.all([first, repeat])).toEqual(["receipt", "receipt"]);
  });

  it("a thousand waiters of two processes ask the server less than twenty times, and all get the result", async () => {
    const proxy = await faultProxy(url);
    onTestFinished(proxy.close);
    const prefix = `crowd-${family}:`;
    const stores = [1, 2].map(() => openStore(family, proxy.url, { prefix, answerTimeoutMs: 60_000 }));
    await Promise.all(stores.map((store) => store.ready()));
    const events: IdempotencyEvent[] = [];
    const instances = stores.map((store) =>
      createIdempotency({
        store,
        scope: "global",
        storeTimeoutMs: 5_000,
        onEvent: (event) => events.push(event),
      }),
    );
    let runs = 0;
    let finish = (): void => undefined;
    const work = () => {
      runs += 1;
      return new Promise<string>((resolve) => {
        finish = () => resolve("receipt");
      });
    };
    const options = { operation: "charge", key: "k", input: 1, onInFlight: { waitMs: 10_000 } } as const;
    const ask = (index: number) => instances[index % 2]?.run(options, work);
    const first = ask(0);
    await until(() => runs === 1, "the leader");
    const repeats = Array.from({ length: 1_000 }, (_, index) => ask(index));
    await new Promise((resolve) => setTimeout(resolve, 100));
    proxy.resetCounts();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const whileWaiting = proxy.counts().roundTrips;
    finish();
    const answers = await Promise.all([first, ...repeats]);
    expect(new Set(answers)).toEqual(new Set(["receipt"]));
    expect(runs).toBe(1);
    expect(whileWaiting).toBeLessThan(20);
  });
});
