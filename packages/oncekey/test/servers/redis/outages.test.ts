import { createIdempotency, type IdempotencyEvent, isOncekeyError } from "oncekey";
import { describe, expect, it, onTestFinished } from "vitest";
import { faultProxy } from "../support/fault-proxy.js";
import { ownServer } from "../support/servers.js";
import { claimOf, completionOf, FAMILIES, openStore, outsider, repeatOf, until } from "./fixture.js";

const CALLERS = 100;

async function server(settings: Record<string, string> = {}) {
  const redis = await ownServer("redis", { settings });
  onTestFinished(redis.close);
  return redis;
}

describe.each(FAMILIES)("with %s", (family) => {
  /** A hundred callers, each with a key of its own at a time, until they are told to stop. */
  async function callers(url: string, prefix: string) {
    const store = openStore(family, url, { prefix, answerTimeoutMs: 400 });
    await store.ready();
    const events: IdempotencyEvent[] = [];
    const idempotency = createIdempotency({
      store,
      scope: "global",
      storeTimeoutMs: 600,
      leaseMs: 60_000,
      onEvent: (event) => events.push(event),
    });
    const codes = new Map<string, number>();
    let going = true;
    let count = 0;
    const caller = async (): Promise<void> => {
      while (going) {
        count += 1;
        const options = { operation: "charge", key: `k${count}`, fingerprint: "off" } as const;
        const code = await idempotency
          .run(options, () => "done")
          .catch((error: unknown) => (isOncekeyError(error) ? error.code : String(error)));
        codes.set(code, (codes.get(code) ?? 0) + 1);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    const all = Promise.all(Array.from({ length: CALLERS }, caller));
    return {
      store,
      codes,
      events,
      count: (code: string) => codes.get(code) ?? 0,
      async stop() {
        going = false;
        await all;
        return idempotency.close({ graceMs: 15_000 });
      },
    };
  }

  it("stopped and started again under a hundred callers: no claim is left that nobody owns", async () => {
    const redis = await server({ appendonly: "yes", appendfsync: "everysec" });
    const run = await callers(redis.url, "outage:");
    await until(() => run.count("done") > CALLERS, "work before the outage");
    await redis.stop();
    await until(() => run.count("STORE_UNAVAILABLE") > 3 * CALLERS, "refusals");
    await redis.start();
    const before = run.count("done");
    await until(() => run.count("done") > before + CALLERS, "work after the outage", 15_000);
    await run.stop();
    expect([...run.codes.keys()].sort()).toEqual(["STORE_UNAVAILABLE", "done"]);
    const left = await run.store.list({ state: "claimed", limit: 1_000 });
    expect(left.records).toEqual([]);
    expect(run.events.some(({ type }) => type === "store-replaced")).toBe(true);
  });

  it("standing still under a hundred callers: what lands late is given back", async () => {
    const redis = await server();
    const run = await callers(redis.url, "pause:");
    await until(() => run.count("done") > CALLERS, "work before");
    await redis.pause();
    await until(() => run.count("STORE_UNAVAILABLE") >= CALLERS, "refusals", 15_000);
    await redis.resume();
    const before = run.count("done");
    await until(() => run.count("done") > before + CALLERS, "work afterwards", 15_000);
    await run.stop();
    expect((await run.store.list({ state: "claimed", limit: 1_000 })).records).toEqual([]);
  });

  it("while the server is away a call fails at once, and is never sent", async () => {
    const redis = await server();
    const store = openStore(family, redis.url, { prefix: "away:" });
    await store.ready();
    await redis.stop("SIGKILL");
    await until(
      () =>
        store.claim(claimOf()).then(
          () => false,
          () => true,
        ),
      "the loss",
    );
    const began = performance.now();
    const claims = Array.from({ length: CALLERS }, () => claimOf());
    const answering = Promise.allSettled(claims.map(store.claim));
    // Back before they could have been given up: what was queued would be sent now.
    await redis.start();
    const answers = await answering;
    expect(performance.now() - began).toBeLessThan(5_000);
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: "rejected", reason: { code: "STORE_UNAVAILABLE" } });
    }
    await until(
      () =>
        store.find(claimOf().key).then(
          () => true,
          () => false,
        ),
      "the connection",
    );
    expect(await outsider(redis.url).keys("away:*")).toEqual([]);
  });

  it("between two connections a call fails at once too, instead of waiting for the next", async () => {
    const redis = await server();
    const proxy = await faultProxy(redis.url);
    onTestFinished(proxy.close);
    const store = openStore(family, proxy.url, { prefix: "gap:" });
    await store.ready();
    proxy.cutAll();
    await until(
      () =>
        store.claim(claimOf()).then(
          () => false,
          () => true,
        ),
      "the loss",
    );
    const claims = Array.from({ length: CALLERS }, () => claimOf());
    const answers = await Promise.allSettled(claims.map(store.claim));
    expect(answers.filter(({ status }) => status === "fulfilled")).toEqual([]);
  });

  it("a call made before there was a connection waits for it, within bounds", async () => {
    const redis = await server();
    await redis.stop();
    const store = openStore(family, redis.url, { answerTimeoutMs: 3_000 });
    const claimed = store.claim(claimOf());
    await redis.start();
    expect(await claimed).toMatchObject({ kind: "claimed" });
    await redis.stop();
    const other = openStore(family, redis.url, { answerTimeoutMs: 100 });
    await expect(other.claim(claimOf())).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await expect(other.ready()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });

  it.each(["before", "after"] as const)(
    "a connection cut %s the answer: asked again, the claim is known",
    async (when) => {
      const redis = await server();
      const proxy = await faultProxy(redis.url);
      onTestFinished(proxy.close);
      const store = openStore(family, proxy.url);
      await store.ready();
      const claim = claimOf();
      const matches = (bytes: Buffer) => bytes.includes(claim.token);
      const cut = when === "before" ? proxy.cutBeforeNext(matches) : proxy.cutAfterNext(matches);
      await expect(store.claim(claim)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
      await cut;
      await until(
        () =>
          store.find(claim.key).then(
            () => true,
            () => false,
          ),
        "a new connection",
      );
      expect((await store.find(claim.key)) === undefined).toBe(when === "before");
      const claimed = { kind: "claimed", attempt: 1, takeover: false, compared: true };
      expect(await store.claim(claim)).toEqual(claimed);
      expect(await store.complete(completionOf(claim))).toEqual({ kind: "completed", how: "stored" });
      expect(await store.claim(repeatOf(claim))).toMatchObject({ kind: "completed" });
    },
  );

  it("a half-open connection is given up, and a new one made", async () => {
    const redis = await server();
    const proxy = await faultProxy(redis.url);
    onTestFinished(proxy.close);
    const store = openStore(family, proxy.url, { answerTimeoutMs: 300 });
    await store.ready();
    proxy.stall();
    const began = performance.now();
    await expect(store.claim(claimOf())).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(performance.now() - began).toBeLessThan(2_000);
    proxy.flow();
    await until(
      () =>
        store.claim(claimOf()).then(
          () => true,
          () => false,
        ),
      "a new connection",
    );
  });

  it("closing ends the store's connections and no others", async () => {
    const redis = await server();
    const beside = outsider(redis.url);
    await beside.ping();
    const connections = async () =>
      String(await beside.client("LIST"))
        .trim()
        .split("\n").length;
    const store = openStore(family, redis.url);
    await store.ready();
    store.watch?.(claimOf().key, () => undefined);
    await until(async () => (await connections()) >= 3, "one for commands, one to listen");
    await Promise.all([store.close(), store.close()]);
    await until(async () => (await connections()) === 1, "their end");
    await expect(store.claim(claimOf())).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });
});
