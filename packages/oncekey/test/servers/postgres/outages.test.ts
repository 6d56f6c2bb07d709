/**
 * The server stands still, restarts, loses connections; the application's own pool is empty. A call that was refused must not
 * happen later, and afterwards the store goes on by itself.
 */
import { fromPg } from "oncekey/stores/postgres";
import { describe, expect, it } from "vitest";
import { claimRequest, repeatOf } from "../../../src/testing/requests.js";
import { completion } from "../../../src/testing/store-contract/scenes.js";
import { ownServer } from "../support/servers.js";
import { drivers, openPool, openStore } from "./fixture.js";
import { sleep } from "./subject.js";

const server = await ownServer("postgres");
const KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'oncekey %'";

describe.each(Object.keys(drivers) as (keyof typeof drivers)[])("with %s", (client) => {
  it("claims that were refused while the server stood still are not made when it goes on", async () => {
    const { store } = await openStore(drivers[client](server.url), { timeoutMs: 300 });
    await store.claim(claimRequest());
    const requests = Array.from({ length: 100 }, () => claimRequest());
    await server.pause();
    let refused: readonly PromiseSettledResult<unknown>[];
    try {
      refused = await Promise.allSettled(requests.map((request) => store.claim(request)));
    } finally {
      await server.resume();
    }
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set(["rejected"]));
    await sleep(500);
    const states = await store.status(requests.map(({ key }) => key));
    expect(states.filter(({ state }) => state !== "absent")).toEqual([]);
    expect(await store.claim(claimRequest())).toMatchObject({ kind: "claimed" });
  });

  it("connections that the server ended are replaced, and no claim is made twice", async () => {
    const { store } = await openStore(drivers[client](server.url));
    const admin = openPool(server.url, 1);
    await store.claim(claimRequest());
    await admin.query(KILL);
    for (let round = 0; round < 20; round++) {
      const requests = Array.from({ length: 20 }, () => claimRequest());
      const claims = Promise.allSettled(requests.map((request) => store.claim(request)));
      if (round % 2 === 0) await admin.query(KILL);
      for (const [index, claim] of (await claims).entries()) {
        const request = requests[index] ?? claimRequest();
        // Refused means unknown: asked again with its token, the claim says how it ended.
        const answer = claim.status === "fulfilled" ? claim.value : await store.claim(request);
        expect(answer).toMatchObject({ kind: "claimed", attempt: 1 });
        expect(await store.claim(repeatOf(request))).toMatchObject({
          kind: "in-flight",
          holder: request.token,
        });
      }
    }
  });

  it("a server that was restarted is used again", async () => {
    const { store } = await openStore(drivers[client](server.url));
    const request = claimRequest();
    await store.claim(request);
    await server.restart();
    expect(await eventually(() => store.complete(completion(request)))).toMatchObject({ kind: "completed" });
    expect(await store.claim(repeatOf(request))).toMatchObject({ kind: "completed" });
  });

  it("a server that takes no writes any more is left, and used again when it does", async () => {
    const { store } = await openStore(drivers[client](server.url));
    const admin = openPool(server.url, 1);
    const become = async (readOnly: "on" | "off") => {
      await admin.query(`ALTER SYSTEM SET default_transaction_read_only = ${readOnly}`);
      await admin.query("SELECT pg_reload_conf()");
      await sleep(200);
    };
    await store.claim(claimRequest());
    await become("on");
    try {
      await expect(store.claim(claimRequest())).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    } finally {
      await become("off");
    }
    expect(await eventually(() => store.claim(claimRequest()))).toMatchObject({ kind: "claimed" });
  });

  it("a server that cannot be reached is told as such, at once", async () => {
    const { store } = await openStore(drivers[client](server.url));
    await server.stop();
    try {
      await expect(store.claim(claimRequest())).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    } finally {
      await server.start();
    }
    expect(await eventually(() => store.claim(claimRequest()))).toMatchObject({ kind: "claimed" });
  });
});

describe("a pool of the application's that is exhausted", () => {
  it("does not delay the store, which has its own", async () => {
    const pool = openPool(server.url, 1);
    const { store } = await openStore(fromPg(pool));
    const taken = await pool.connect();
    try {
      const request = claimRequest();
      expect(await store.claim(request)).toMatchObject({ kind: "claimed" });
      expect(await store.complete(completion(request))).toMatchObject({ kind: "completed" });
    } finally {
      taken.release();
    }
  });
});

async function eventually<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (tries === 50) throw error;
      await sleep(100);
    }
  }
}
