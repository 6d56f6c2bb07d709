/**
 * @module
 * The store on Redis or Valkey: one server, Sentinel or a cluster, seen by every host.
 *
 * Invariants: the calls of every request are one round trip each; the server's clock decides; what this process knows of the
 * server (traits, who it is) is read from it whenever there is a new connection. Nothing here decides what a call means.
 */
import { systemClock } from "../../core/clock.js";
import type { RecordKey } from "../../core/record.js";
import type { KeyStatus } from "../../core/store.js";
import { statusOf } from "../../core/transitions.js";
import { createNotices } from "../notices.js";
import type { RemoteStore } from "../remote-store.js";
import { createCalls } from "./calls.js";
import type { RedisDriver } from "./driver.js";
import { infoOf, listRecords } from "./list.js";
import { type RedisStoreOptions, settingsOf } from "./options.js";
import { unreadable } from "./reading.js";
import { createRecords, type GlanceAt } from "./records.js";
import { watchServers } from "./servers.js";
import { createSuccession } from "./succession.js";
import { createWatchers } from "./watch.js";
import { createWire } from "./wire.js";

export interface RedisStore extends RemoteStore<never> {
  /**
   * Resolves once the servers have been asked what they keep, so that `traits` says what they said. Before that `traits`
   * says the worst, and at-most-once is refused unless `acceptsLostWrites` is set: await this first.
   *
   * @throws OncekeyError `STORE_UNAVAILABLE` if there was no connection in time; it goes on connecting.
   */
  ready(): Promise<void>;
}

/**
 * Records in Redis 7 or Valkey.
 *
 * The store connects by itself, with connections of its own made from the settings of the client in the driver, and closes
 * only those. While the server cannot be reached every call is refused at once; it may be made before there is a connection.
 * Every call is atomic and repeatable. One that is rejected may have been carried out: repeating it tells.
 *
 * @example const store = redisStore(fromIoredis(new Redis("redis://127.0.0.1:6379")));
 * @throws OncekeyError `CONFIGURATION_INVALID` if the driver is none, or if an option is out of bounds.
 */
export function redisStore(driver: RedisDriver, options: RedisStoreOptions = {}): RedisStore {
  const settings = settingsOf(driver, options);
  const { answerTimeoutMs: waitMs, durability } = settings;
  const prefix = driver.keyPrefix + settings.prefix;
  const notices = createNotices();
  const succession = createSuccession(monotonicMs, () => servers.look());
  let connected = (): void => undefined;
  const firstConnection = new Promise<void>((resolve) => {
    connected = resolve;
  });

  let closed = false;

  const connection = driver.open(
    {
      connected() {
        connected();
        void servers.look();
      },
      changed() {
        succession.lost();
        void servers.look();
      },
      lost: succession.lost,
      published: (name) => watchers.published(records.keyOf(name)),
      listening: () => watchers.missed(),
    },
    { answerMs: waitMs },
  );
  const wire = createWire({ connection, firstConnection, waitMs, durability });
  const records = createRecords({ wire, prefix, cluster: driver.cluster, answerTimeoutMs: waitMs });
  const servers = watchServers({
    connection: () => connection,
    replicated: driver.replicated,
    durability,
    succession,
    notices,
  });
  const status = async (keys: readonly RecordKey[]): Promise<readonly KeyStatus[]> => {
    await wire.ready();
    return (await records.glance(keys)).map(statusIn);
  };
  const watchers = createWatchers({
    subscribe: (key) => connection.subscribe(records.nameOf(key)),
    unsubscribe: (key) => connection.unsubscribe(records.nameOf(key)),
    status,
  });

  return {
    name: "redis",
    get traits() {
      return servers.traits();
    },
    ready: async () => {
      await wire.ready();
      await servers.look();
    },
    notices: notices.listen,
    ...createCalls({ wire, records, succession }),
    status,
    watch: watchers.watch,
    async find(key) {
      const [found] = await records.glance([key]);
      if (found?.glance === "unreadable") throw unreadable(undefined);
      return found?.glance && infoOf(found.glance, found.nowMs);
    },
    list: (request) => listRecords({ wire, records, prefix, nodes: connection.nodes, monotonicMs }, request),
    async discard(key) {
      await wire.ready();
      await wire.command(records.nameOf(key), ["DEL", records.nameOf(key)], (gone) => gone === 1);
    },
    // Redis removes what has expired by itself.
    purge: async () => wire.ready().then(() => 0),
    async close() {
      if (closed) return;
      closed = true;
      wire.close();
      watchers.close();
      connection.close();
    },
  };
}

/** Something that cannot be read looks free: whoever goes on to claim it is told. */
function statusIn({ glance, nowMs }: GlanceAt): KeyStatus {
  if (glance === "unreadable") return { state: "lapsed", holder: undefined };
  return statusOf(glance?.record, nowMs);
}

function monotonicMs(): number {
  return systemClock.monotonicMs();
}
