/**
 * A takeover is read, decided and written back. A write that reached a standing server, and whose caller has been refused
 * meanwhile, must not land when the server goes on: its key would belong to nobody for a whole lease.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Store } from "oncekey";
import { expect, it } from "vitest";
import { claimRequest, repeatOf } from "../../src/testing/requests.js";
import { openStore as openMysql } from "./mysql/fixture.js";
import { drivers, openStore as openPostgres } from "./postgres/fixture.js";
import { FAMILIES, openStore as openRedis } from "./redis/fixture.js";
import { faultProxy } from "./support/fault-proxy.js";
import { ownServer, uniquePrefix } from "./support/servers.js";

const TIMEOUT_MS = 400;

interface Kind {
  readonly server: "postgres" | "mariadb" | "redis";
  /** Two stores on the same records, the second at another address of the server. */
  readonly open: (url: string, through: string) => Promise<readonly [direct: Store, behind: Store]>;
  /** Whether that is the statement that writes a record back, of those that carry the new token. */
  readonly isWrite: (sent: string, token: string) => boolean;
}

const KINDS: Readonly<Record<string, Kind>> = {
  "mysql2 on MariaDB": {
    server: "mariadb",
    async open(url, through) {
      const { store, another } = await openMysql(url);
      return [store, another({ timeoutMs: TIMEOUT_MS }, through)];
    },
    isWrite: (sent) => sent.includes("UPDATE"),
  },
  ...Object.fromEntries(Object.entries(drivers).map(([client, driver]) => [client, onPostgres(driver)])),
  ...Object.fromEntries(FAMILIES.map((family) => [family, onRedis(family)])),
};

function onPostgres(driver: (typeof drivers)["pg"]): Kind {
  return {
    server: "postgres",
    async open(url, through) {
      const { store, tablePrefix } = await openPostgres(driver(url));
      const behind = await openPostgres(driver(through), { tablePrefix, timeoutMs: TIMEOUT_MS });
      return [store, behind.store];
    },
    // A claim has it in a list, as all claims of a turn go together.
    isWrite: (sent, token) => !sent.includes(`"${token}"`),
  };
}

function onRedis(family: (typeof FAMILIES)[number]): Kind {
  return {
    server: "redis",
    async open(url, through) {
      const prefix = `${uniquePrefix()}:`;
      const behind = openRedis(family, through, { prefix, answerTimeoutMs: TIMEOUT_MS });
      await behind.ready();
      return [openRedis(family, url, { prefix }), behind];
    },
    isWrite: (sent) => !sent.includes("\r\nSET\r\n"),
  };
}

it.each(Object.entries(KINDS))("a takeover that was refused is not made later, with %s", async (_, kind) => {
  const server = await ownServer(kind.server);
  const proxy = await faultProxy(server.url);
  const [direct, behind] = await kind.open(server.url, proxy.url);
  const lapsed = claimRequest({ leaseMs: 20 });
  await direct.claim(lapsed);
  // What a client prepares for its first statement of a kind is not what is looked at here.
  const first = claimRequest({ leaseMs: 1 });
  await behind.claim(first);
  await sleep(50);
  expect(await behind.claim(repeatOf(first))).toMatchObject({ kind: "claimed", takeover: true });

  const takeover = repeatOf(lapsed);
  let isPaused = false;
  const isWrite = (piece: Buffer): boolean => {
    const sent = piece.toString("latin1");
    return sent.includes(takeover.token) && kind.isWrite(sent, takeover.token);
  };
  proxy.actBeforeNext(isWrite, async () => {
    await server.pause();
    isPaused = true;
  });
  await expect(behind.claim(takeover)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  expect(isPaused).toBe(true);
  await server.resume();
  await sleep(500);
  expect(await direct.find(lapsed.key)).toMatchObject({ holder: lapsed.token, attempt: 1, lapsed: true });
  await Promise.all([direct.close(), behind.close(), proxy.close()]);
  await server.close();
});
