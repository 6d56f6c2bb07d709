/**
 * @module scripts/services/kinds
 *
 * What differs between the servers: which programs, how their data begins, how they are started, when they are ready, and how
 * they end. Listening on 127.0.0.1 only, no unix socket where it can be turned off (else in the private folder).
 *
 * By default an acknowledged write survives the end of the process but not of the machine: tests kill processes, and
 * waiting for disks would only make them slower. Who measures sets what differs (`settings`).
 */
import { join } from "node:path";
import { ask, askRedis } from "./wire.mjs";

/**
 * @typedef {Readonly<Record<string, string>>} Settings
 *
 * @typedef {object} Place
 * @property {string} folder of this server alone
 * @property {readonly string[]} programs
 *
 * @typedef {object} Listening
 * @property {number} port
 * @property {string} address
 *
 * @typedef {object} Kind
 * @property {import("./programs.mjs").Needs} needs
 * @property {readonly string[]} accounts that it may run as when root starts it, the first that exists; none: as root
 * @property {Settings} settings
 * @property {(place: Place) => readonly string[] | undefined} preparation the command that makes the data folder
 * @property {(place: Place) => readonly string[]} program the command up to what depends on the place
 * @property {(where: Listening, settings: Settings) => readonly string[]} options the rest of the command, also in a container
 * @property {{ program: readonly string[], env: Readonly<Record<string, string>> }} container
 * @property {(port: number) => Promise<boolean>} isReady
 * @property {(port: number) => string} url
 * @property {NodeJS.Signals} gracefully
 * @property {NodeJS.Signals} lastly ends it when its data are thrown away
 */

/** @type {Kind} */
const redis = {
  needs: {
    name: "Redis 7 or Valkey",
    programs: [["redis-server"], ["valkey-server"]],
    image: "redis:7",
    packages: ["redis-server"],
    brew: "redis",
  },
  accounts: [],
  settings: { save: "", appendonly: "no", databases: "1024", "enable-debug-command": "local" },
  preparation: () => undefined,
  // As options: a first argument is the name of a configuration file.
  program: ({ folder, programs: [server = "redis-server"] }) => [server, "--dir", folder],
  options: ({ port, address }, settings) => [
    ...["--port", String(port), "--bind", address, "--protected-mode", "no"],
    ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
  ],
  container: { program: ["redis-server"], env: {} },
  isReady: async (port) => (await askRedis(port, "PING")) === "+PONG",
  url: (port) => `redis://127.0.0.1:${port}`,
  gracefully: "SIGTERM",
  lastly: "SIGKILL",
};

/** @type {Kind} */
const postgres = {
  needs: {
    name: "PostgreSQL",
    programs: [["postgres", "initdb"]],
    image: "postgres:17",
    packages: ["postgresql"],
    brew: "postgresql",
  },
  accounts: ["postgres", "nobody"],
  settings: { fsync: "off", full_page_writes: "off", max_connections: "500" },
  preparation: ({ folder, programs: [, initdb = "initdb"] }) => [
    initdb,
    ...["--pgdata", join(folder, "data"), "--username", "postgres", "--auth", "trust"],
    ...["--encoding", "UTF8", "--locale", "C", "--no-sync"],
  ],
  program: ({ folder, programs: [server = "postgres"] }) => [
    server,
    ...["-D", join(folder, "data"), "-c", "unix_socket_directories="],
  ],
  options: ({ port, address }, settings) => [
    ...["-p", String(port), "-c", `listen_addresses=${address}`],
    ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  ],
  container: { program: ["postgres"], env: { POSTGRES_HOST_AUTH_METHOD: "trust" } },
  isReady: async (port) => (await ask(port, greetingForPostgres()))[0] === "R".charCodeAt(0),
  url: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
  gracefully: "SIGINT",
  // SIGKILL would leave its shared memory and its children behind.
  lastly: "SIGQUIT",
};

/** @type {Kind} */
const mariadb = {
  needs: {
    name: "MariaDB",
    programs: [
      ["mariadbd", "mariadb-install-db"],
      ["mysqld", "mysql_install_db"],
    ],
    image: "mariadb:lts",
    packages: ["mariadb-server"],
    brew: "mariadb",
  },
  accounts: ["mysql", "nobody"],
  settings: {
    "innodb-flush-log-at-trx-commit": "2",
    "innodb-log-file-size": "16M",
    "max-connections": "500",
    "character-set-server": "utf8mb4",
  },
  preparation: ({ folder, programs: [, install = "mariadb-install-db"] }) => [
    install,
    ...["--no-defaults", `--datadir=${join(folder, "data")}`, "--skip-test-db"],
    ...["--auth-root-authentication-method=normal", "--innodb-log-file-size=16M"],
  ],
  program: ({ folder, programs: [server = "mariadbd"] }) => [
    server,
    ...["--no-defaults", `--datadir=${join(folder, "data")}`],
    ...[`--socket=${join(folder, "socket")}`, `--pid-file=${join(folder, "pid")}`],
  ],
  options: ({ port, address }, settings) => [
    ...[`--port=${port}`, `--bind-address=${address}`],
    ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
  ],
  container: { program: ["mariadbd"], env: { MARIADB_ALLOW_EMPTY_ROOT_PASSWORD: "1" } },
  isReady: async (port) => (await ask(port, ""))[4] === 10,
  url: (port) => `mysql://root@127.0.0.1:${port}/mysql`,
  gracefully: "SIGTERM",
  lastly: "SIGKILL",
};

export const kinds = { redis, postgres, mariadb };

/** The first message of a client of Postgres: length, version 3.0, who and where. */
function greetingForPostgres() {
  const body = Buffer.from("\0\x03\0\0user\0postgres\0database\0postgres\0\0");
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([length, body]);
}
