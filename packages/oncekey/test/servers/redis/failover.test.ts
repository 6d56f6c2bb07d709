import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { createIdempotency, type IdempotencyEvent, type StoreNotice } from "oncekey";
import type { RedisStore } from "oncekey/stores/redis";
import { describe, expect, it, onTestFinished } from "vitest";
import { ownServer } from "../support/servers.js";
import { claimOf, completionOf, FAMILIES, openStore, outsider, repeatOf, until } from "./fixture.js";

const LEASE_MS = 1_500;
const atMostOnce = { guarantee: "at-most-once", onLapse: "hold", leaseMs: LEASE_MS } as const;

async function server(settings: Record<string, string> = {}) {
  const redis = await ownServer("redis", { settings });
  onTestFinished(redis.close);
  return redis;
}

/** An address that leads to one server and then to another, as the name of a managed service does. */
async function movingAddress(target: { readonly port: number }) {
  let { port: now } = target;
  const sockets = new Set<Socket>();
  const listener = createServer((client) => {
    const upstream = connect(now, "127.0.0.1");
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on("error", () => undefined).on("close", () => other.destroy());
      one.pipe(other);
    }
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  onTestFinished(() => {
    cut();
    listener.close();
  });
  return {
    url: `redis://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    leadTo({ port }: { readonly port: number }) {
      now = port;
      cut();
    },
  };
}

/** A primary with a replica, and an address that leads to whichever is asked for. */
async function pair() {
  const primary = await server();
  const replica = await server({ replicaof: `127.0.0.1 ${primary.port}`, "repl-diskless-sync-delay": "0" });
  const onReplica = outsider(replica.url);
  await until(
    async () => (await onReplica.info("replication")).includes("master_link_status:up"),
    "the link",
  );
  const address = await movingAddress(primary);
  return {
    primary,
    url: address.url,
    onReplica,
    async failOver() {
      await primary.stop("SIGKILL");
      await onReplica.replicaof("NO", "ONE");
      address.leadTo(replica);
    },
  };
}

function noticesOf(store: RedisStore): StoreNotice[] {
  const notices: StoreNotice[] = [];
  store.notices?.((notice) => notices.push(notice));
  return notices;
}

const known = (store: RedisStore) =>
  store.find(claimOf().key).then(
    () => true,
    () => false,
  );

describe.each(FAMILIES)("a replica is promoted, with %s", (family) => {
  it("said at once; under at-most-once keys never seen wait for one lease, known ones answer, holders go on", async () => {
    const { url, failOver, primary, onReplica } = await pair();
    const store = openStore(family, url);
    await store.ready();
    expect(store.traits.forgetsOn.failover).toBe(true);
    const notices = noticesOf(store);
    const [completed, held] = [claimOf(), claimOf(undefined, { ...atMostOnce, leaseMs: 30_000 })];
    await store.claim(completed);
    await store.complete(completionOf(completed));
    // What the replica does not get any more is what a failover loses.
    await until(async () => (await outsider(primary.url).wait(1, 1_000)) === 1, "the replica has it");
    await onReplica.config("SET", "replica-serve-stale-data", "yes");
    await onReplica.replicaof("127.0.0.1", 1);
    await store.claim(held);
    const began = performance.now();
    await failOver();
    await until(() => known(store), "the promoted server");

    const unseen = claimOf(undefined, atMostOnce);
    await expect(store.claim(unseen)).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: expect.stringContaining("never seen"),
      retryAfterMs: expect.toSatisfy((ms: number) => ms > 0 && ms <= LEASE_MS),
    });
    await until(() => notices.some(({ kind }) => kind === "server-replaced"), "the notice");
    expect(await store.claim(repeatOf(completed))).toMatchObject({ kind: "completed" });
    expect(await store.claim(claimOf(undefined, { leaseMs: LEASE_MS }))).toMatchObject({ kind: "claimed" });
    // The holder of a claim that was lost renews, is told, and makes it again.
    expect(await store.extend(held)).toEqual({ kind: "gone" });
    expect(await store.claim(held)).toMatchObject({ kind: "claimed", attempt: 1 });
    expect(await store.claim(repeatOf(held))).toMatchObject({ kind: "in-flight", holder: held.token });

    await until(
      () =>
        store.claim(unseen).then(
          ({ kind }) => kind === "claimed",
          () => false,
        ),
      "the end of one lease",
    );
    expect(performance.now() - began).toBeGreaterThan(LEASE_MS - 100);
  });

  it("work that runs meanwhile is not started a second time", async () => {
    const { url, failOver } = await pair();
    const store = openStore(family, url, { answerTimeoutMs: 300 });
    await store.ready();
    const events: IdempotencyEvent[] = [];
    const idempotency = createIdempotency({
      store,
      scope: "global",
      guarantee: "at-most-once",
      acceptsLostWrites: true,
      leaseMs: 2_000,
      storeTimeoutMs: 500,
      onEvent: (event) => events.push(event),
    });
    let started = 0;
    let finish = (): void => undefined;
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const work = async () => {
      started += 1;
      await finished;
      return "done";
    };
    const options = { operation: "charge", key: "order-1", input: 1, onInFlight: "reject" } as const;
    const first = idempotency.run(options, work);
    await until(() => started === 1, "the start");
    await failOver();
    const answers = new Set<string>();
    for (let round = 0; round < 30; round += 1) {
      const code = await idempotency.run(options, work).catch((error: { code: string }) => error.code);
      answers.add(code);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    finish();
    expect(await first).toBe("done");
    expect(started).toBe(1);
    expect([...answers].filter((code) => !["IN_FLIGHT", "STORE_UNAVAILABLE"].includes(code))).toEqual([]);
    await until(() => events.some(({ type }) => type === "store-replaced"), "the event");
    await idempotency.close();
  });
});

describe.each(FAMILIES)("a server that comes back empty, with %s", (family) => {
  it("starts nothing a second time, though claims were asked while it was away", async () => {
    const redis = await server({ save: "", appendonly: "no" });
    const store = openStore(family, redis.url, { answerTimeoutMs: 300 });
    await store.ready();
    const held = claimOf(undefined, { ...atMostOnce, leaseMs: 30_000 });
    await store.claim(held);
    await redis.stop("SIGKILL");
    for (let n = 0; n < 5; n += 1) {
      await expect(store.claim(repeatOf(held))).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await redis.start();
    // Turn by turn: one of them meets the server as soon as it can be met at all.
    let answer: unknown;
    for (const began = performance.now(); performance.now() - began < 10_000; ) {
      answer = await store.claim(repeatOf(held)).catch((error: Error) => error.message);
      if (typeof answer !== "string" || answer.includes("never seen")) break;
      await new Promise(setImmediate);
    }
    expect(answer).toContain("never seen");
    expect(await store.claim(claimOf())).toMatchObject({ kind: "claimed" });
  });
});

describe.each(FAMILIES)("the same server, with %s", (family) => {
  it("after a broken connection nobody is held back", async () => {
    const redis = await server();
    const address = await movingAddress(redis);
    const store = openStore(family, address.url);
    await store.ready();
    const notices = noticesOf(store);
    address.leadTo(redis);
    await until(() => known(store), "the connection");
    expect(await store.claim(claimOf(undefined, atMostOnce))).toMatchObject({ kind: "claimed" });
    expect(notices.filter(({ kind }) => kind === "server-replaced")).toEqual([]);
  });
});
