/**
 * @module test/servers/support/shared-servers
 *
 * The servers that test files share, each started when the first file asks for it. An address in the environment is used
 * instead, if there is one. Files share servers, never a database.
 */
import { type ServerKind, startServer } from "../../../../../scripts/services.mjs";
import {
  createMysqlDatabase,
  createPostgresDatabase,
  type Database,
  emptyRedisDatabase,
} from "./databases.js";

/** What a test file can ask for. MySQL itself is never started: `mariadb` is its relative that everybody can have. */
export type Wanted = ServerKind | "mysql";

/** `urls` is empty if there is no such server: only MySQL can be missing. */
export interface Answer {
  readonly urls: readonly string[];
}

const variables = {
  redis: "ONCEKEY_TEST_REDIS_URL",
  "redis-cluster": "ONCEKEY_TEST_REDIS_CLUSTER_URLS",
  postgres: "ONCEKEY_TEST_POSTGRES_URL",
  mariadb: "ONCEKEY_TEST_MARIADB_URL",
  mysql: "ONCEKEY_TEST_MYSQL_URL",
  rabbitmq: "ONCEKEY_TEST_RABBITMQ_URL",
  nats: "ONCEKEY_TEST_NATS_URL",
} as const satisfies Record<Wanted, string>;

const databasesOf = {
  redis: emptyRedisDatabase,
  postgres: createPostgresDatabase,
  mariadb: createMysqlDatabase,
  mysql: createMysqlDatabase,
} as const satisfies Partial<Record<Wanted, (url: string, n: number) => Promise<Database>>>;

/** What has databases that can be told apart; on the others, files take names of their own. */
function hasDatabases(wanted: Wanted): wanted is keyof typeof databasesOf {
  return Object.hasOwn(databasesOf, wanted);
}

export function isWanted(name: string): name is Wanted {
  return Object.hasOwn(variables, name);
}

/** The kinds that have to be started here. */
export function kindsToStart(): readonly ServerKind[] {
  const kinds: readonly ServerKind[] = ["redis", "redis-cluster", "postgres", "mariadb", "rabbitmq", "nats"];
  return kinds.filter((kind) => givenUrls(kind).length === 0);
}

function givenUrls(wanted: Wanted): readonly string[] {
  return (process.env[variables[wanted]] ?? "")
    .split(",")
    .map((url) => url.trim())
    .filter((url) => url !== "");
}

export function sharedServers() {
  const servers = new Map<Wanted, Promise<readonly string[]>>();
  const endings: (() => Promise<void>)[] = [];
  const databases: Database[] = [];
  let number = 0;

  const start = async (wanted: Wanted): Promise<readonly string[]> => {
    const given = givenUrls(wanted);
    if (given.length > 0 || wanted === "mysql") return given;
    const server = await startServer(wanted);
    endings.push(server.close);
    return "urls" in server ? server.urls : [server.url];
  };

  const urlsOf = (wanted: Wanted): Promise<readonly string[]> => {
    const urls = servers.get(wanted) ?? start(wanted);
    servers.set(wanted, urls);
    return urls;
  };

  return {
    /** A database that nobody had before; of a cluster or a broker, which has none, its addresses. */
    async fresh(wanted: Wanted): Promise<Answer> {
      const urls = await urlsOf(wanted);
      const [serverUrl] = urls;
      if (!hasDatabases(wanted) || serverUrl === undefined) return { urls };
      number += 1;
      const database = await databasesOf[wanted](serverUrl, number);
      databases.push(database);
      return { urls: [database.url] };
    },

    async close(): Promise<void> {
      await Promise.allSettled(databases.map(({ drop }) => drop()));
      await Promise.allSettled(endings.map((end) => end()));
    },
  };
}
