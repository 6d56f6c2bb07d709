/** Waiters of other processes hear by LISTEN, also after its connection was lost, and cost the server nothing meanwhile. */
import { createIdempotency, GLOBAL_SCOPE } from "oncekey";
import { fromPg, type PostgresDriver } from "oncekey/stores/postgres";
import { describe, expect, it, onTestFinished } from "vitest";
import type { RecordKey } from "../../../src/core/record.js";
import type { Store } from "../../../src/core/store.js";
import { claimRequest } from "../../../src/testing/requests.js";
import { completion } from "../../../src/testing/store-contract/scenes.js";
import { postgresUrl } from "../support/servers.js";
import { drivers, openPool, openStore, watched } from "./fixture.js";
import { sleep } from "./subject.js";

const url = await postgresUrl();

describe.each(Object.keys(drivers) as (keyof typeof drivers)[])("listening with %s", (client) => {
  it("goes on after its connection was lost, and wakes whoever may have missed something", async () => {
    const { store, another } = await openStore(drivers[client](url));
    const other = another();
    const admin = openPool(url, 2);
    await Promise.all([store, other].map((one) => one.find(claimRequest().key)));
    await until(
      () => listeners(admin),
      (count) => count >= 2,
    );
    const request = claimRequest();
    await store.claim(request);
    const wakeUps = watchOf(store, request.key);
    await admin.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'oncekey listen' AND datname = current_database()",
    );
    await until(
      async () => wakeUps.count(),
      (count) => count > 0,
    );
    const missed = wakeUps.count();
    await other.complete(completion(request));
    await until(
      async () => wakeUps.count(),
      (count) => count > missed,
    );
  });
});

describe("a thousand waiters on one key, in two processes", () => {
  it("cost fewer than twenty statements while they wait", async () => {
    let statements = 0;
    const driver = watched(fromPg(openPool(url)), () => {
      statements += 1;
    });
    const { store, another } = await openStore(driver);
    const instances = [store, another()].map((one) => createIdempotency({ store: one }));
    const [first] = instances;
    const call = { operation: "charge", scope: GLOBAL_SCOPE, key: "one", input: 1 } as const;
    let finish: (value: string) => void = () => undefined;
    let runs = 0;
    const leader = first?.run(call, () => {
      runs += 1;
      return new Promise<string>((resolve) => {
        finish = resolve;
      });
    });
    await until(
      async () => runs,
      (count) => count === 1,
    );
    const waiters = Array.from({ length: 1_000 }, (_, index) =>
      instances[index % 2]?.run(call, async () => "run twice"),
    );
    await sleep(200);
    const before = statements;
    await sleep(1_000);
    const waiting = statements - before;
    finish("paid");
    expect(new Set(await Promise.all([leader, ...waiters]))).toEqual(new Set(["paid"]));
    expect(waiting).toBeLessThan(20);
    for (const instance of instances) await instance.close();
  });
});

describe("a store that cannot listen", () => {
  const told = async (driver: PostgresDriver) => {
    const { store } = await openStore(driver, { timeoutMs: 200 });
    const notices: string[] = [];
    store.notices?.(({ text }) => notices.push(text));
    expect(await store.claim(claimRequest())).toMatchObject({ kind: "claimed" });
    await until(
      async () => notices.length,
      (count) => count > 0,
    );
    return notices;
  };

  it("says so when nothing arrives, as behind a pooler", async () => {
    const driver = fromPg(openPool(url)) as unknown as PostgresDriver;
    const deaf = { ...driver, listen: async () => ({ close: async () => undefined }) };
    expect(await told(deaf)).toEqual([expect.stringContaining("pooler: true")]);
  });

  it("says so when it is refused", async () => {
    const driver = fromPg(openPool(url)) as unknown as PostgresDriver;
    const refused = { ...driver, listen: () => Promise.reject(new Error("too many connections")) };
    expect(await told(refused)).toEqual([expect.stringContaining("too many connections")]);
  });

  it("says so from the start when it was told not to", async () => {
    const { store } = await openStore(fromPg(openPool(url)), { pooler: true });
    expect(store.warnings).toEqual([expect.stringContaining("does not listen")]);
  });
});

function watchOf(store: Store, key: RecordKey) {
  let count = 0;
  const watch = store.watch?.(key, () => {
    count += 1;
  });
  onTestFinished(() => watch?.close());
  return { count: () => count };
}

async function listeners(admin: ReturnType<typeof openPool>): Promise<number> {
  const { rows } = await admin.query(
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'oncekey listen' AND state = 'idle' AND datname = current_database()",
  );
  return rows[0].n;
}

async function until<T>(look: () => Promise<T>, done: (seen: T) => boolean): Promise<void> {
  for (let tries = 0; !done(await look()); tries++) {
    if (tries === 400) throw new Error("It did not come to that");
    await sleep(20);
  }
}
