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
 * @property {readonly number[]} more free ports, as many as the kind asks for
 *
 * @typedef {object} Kind
 * @property {import("./programs.mjs").Needs} needs
 * @property {readonly string[]} accounts that it may run as when root starts it, the first that exists; none: as root
 * @property {Settings} settings
 * @property {(place: Place) => readonly string[] | undefined} preparation the command that makes the data folder
 * @property {(place: Place) => readonly string[]} program the command up to what depends on the place
 * @property {(where: Listening, settings: Settings) => readonly string[]} options the rest of the command, also in a container
 * @property {{ program: readonly string[], env: Readonly<Record<string, string>> }} container
 * @property {number} [morePorts] that it listens on beside its own
 * @property {(where: Listening, settings: Settings, place?: Place) => Readonly<Record<string, string>>} [env] what it is told by
 *   its environment; without a place: in a container
 * @property {(where: Listening, place: Place) => readonly string[]} [companion] a second process that it needs, and would leave
 *   behind if it started it itself
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

/** @type {Kind} */
const rabbitmq = {
  needs: {
    name: "RabbitMQ",
    // Debian's command of this name changes the user and the folder; the script that it calls is in neither's PATH.
    programs: [
      ["/usr/lib/rabbitmq/bin/rabbitmq-server", "epmd"],
      ["rabbitmq-server", "epmd"],
    ],
    image: "rabbitmq:4",
    packages: ["rabbitmq-server"],
    brew: "rabbitmq",
  },
  accounts: [],
  // Names and terms of Erlang. A container's clients are not on its loopback address.
  settings: { loopback_users: "[]", disk_free_limit: "50000000" },
  preparation: () => undefined,
  program: ({ programs: [server = "rabbitmq-server"] }) => [server],
  options: () => [],
  container: { program: ["rabbitmq-server"], env: {} },
  morePorts: 2,
  env: ({ port, address, more: [distribution, mapper] }, settings, place) => {
    const own = Object.entries(settings).map(([name, term]) => `-rabbit ${name} ${term}`);
    const node = { RABBITMQ_NODE_PORT: String(port), RABBITMQ_NODE_IP_ADDRESS: address };
    if (place === undefined) return { ...node, RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: own.join(" ") };
    const { folder } = place;
    return {
      ...node,
      // As one process: the script would otherwise stay in front of the server, and a signal to it would not reach that.
      detached: "yes",
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: ["-kernel inet_dist_use_interface {127,0,0,1}", ...own].join(" "),
      RABBITMQ_NODENAME: `oncekey-${port}@localhost`,
      RABBITMQ_DIST_PORT: String(distribution),
      ERL_EPMD_PORT: String(mapper),
      ERL_EPMD_ADDRESS: "127.0.0.1",
      ERL_CRASH_DUMP_SECONDS: "0",
      RABBITMQ_MNESIA_BASE: join(folder, "data"),
      RABBITMQ_LOG_BASE: folder,
      RABBITMQ_LOGS: "-",
      RABBITMQ_PID_FILE: join(folder, "pid"),
      RABBITMQ_GENERATED_CONFIG_DIR: join(folder, "generated"),
      // None of these is there: what this machine has configured is not for this server, and no plugin opens a port.
      RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, "plugins"),
      RABBITMQ_CONFIG_FILE: join(folder, "none"),
      RABBITMQ_ADVANCED_CONFIG_FILE: join(folder, "none.config"),
      RABBITMQ_CONF_ENV_FILE: join(folder, "none.env"),
    };
  },
  companion: ({ more: [, mapper] }, { programs: [, epmd = "epmd"] }) => [
    epmd,
    ...["-port", String(mapper), "-address", "127.0.0.1"],
  ],
  // The first frame that it sends is of type 1, a method.
  isReady: async (port) => (await ask(port, "AMQP\0\0\x09\x01"))[0] === 1,
  url: (port) => `amqp://guest:guest@127.0.0.1:${port}`,
  gracefully: "SIGTERM",
  lastly: "SIGKILL",
};

/** @type {Kind} */
const nats = {
  needs: {
    name: "NATS",
    programs: [["nats-server"]],
    image: "nats:2",
    packages: ["nats-server"],
    brew: "nats-server",
  },
  accounts: [],
  settings: {},
  preparation: () => undefined,
  program: ({ folder, programs: [server = "nats-server"] }) => [
    server,
    ...["--store_dir", join(folder, "jetstream")],
  ],
  options: ({ port, address }, settings) => [
    ...["--addr", address, "--port", String(port), "--jetstream"],
    ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
  ],
  container: { program: ["nats-server"], env: {} },
  isReady: async (port) => (await ask(port, "")).includes('"jetstream":true'),
  url: (port) => `nats://127.0.0.1:${port}`,
  gracefully: "SIGTERM",
  lastly: "SIGKILL",
};

export const kinds = { redis, postgres, mariadb, rabbitmq, nats };

/** The first message of a client of Postgres: length, version 3.0, who and where. */
function greetingForPostgres() {
  const body = Buffer.from("\0\x03\0\0user\0postgres\0database\0postgres\0\0");
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([length, body]);
}
