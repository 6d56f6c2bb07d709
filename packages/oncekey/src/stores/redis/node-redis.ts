/**
 * @module
 * The client `redis` (node-redis): one server or a cluster.
 *
 * Invariant: nothing is asked of the application's client but its settings and a duplicate. What is switched off in the
 * duplicate, and why, stands beside it.
 */
import { systemClock } from "../../core/clock.js";
import { configurationError } from "../../core/errors.js";
import {
  type RedisArgument,
  type RedisConnection,
  type RedisDriver,
  type RedisEvents,
  type RedisNode,
  type RedisReply,
  reconnectDelayMs,
  type Timeouts,
} from "./driver.js";
import { watchSilence } from "./silence.js";

/** What is asked of a client made by `createClient` or `createCluster`: its settings, and a duplicate. */
export interface NodeRedisClient {
  duplicate(...args: never[]): object;
  sSubscribe(...args: never[]): unknown;
}

/** What is used of a duplicate. */
interface Duplicate {
  connect(): Promise<unknown>;
  sSubscribe(channel: string, listener: () => unknown): Promise<unknown>;
  sUnsubscribe(channel: string, listener: () => unknown): Promise<unknown> | undefined;
  on(event: string, listener: () => void): unknown;
  destroy(): void;
}

interface Single extends Duplicate {
  sendCommand(args: RedisArgument[]): Promise<unknown>;
  withCommandOptions(options: object): Single;
}

interface Master {
  readonly address: string;
}

interface Whole extends Duplicate {
  readonly masters: readonly Master[];
  sendCommand(firstKey: string, isReadonly: boolean, args: RedisArgument[]): Promise<unknown>;
  nodeClient(node: Master): PromiseLike<Single> | Single;
}

/** "$", a bulk string, in the client's table of types: what was stored as bytes comes back as bytes. */
const BULK_STRING = 36;
const RENEW_EVERY_MS = 1_000;
/** No timer for each command: the connection has one. */
const COMMAND_OPTIONS = { typeMapping: { [BULK_STRING]: Buffer }, timeout: undefined };

/**
 * The client `redis` (node-redis), made by `createClient` or `createCluster`.
 *
 * The store makes connections of its own from the client's settings, and never uses or closes the client itself, which may be
 * closed or not connected yet.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` if it is no client of node-redis.
 */
export function fromNodeRedis(client: NodeRedisClient): RedisDriver {
  const given = client as Partial<NodeRedisClient> | null | undefined;
  if (typeof given?.sSubscribe !== "function" || typeof given.duplicate !== "function") {
    throw configurationError("The driver node-redis", [
      "it takes a client of the package redis, made by createClient or createCluster (not createSentinel or createClientPool)",
    ]);
  }
  const cluster = "masters" in given;
  const { keyPrefix } = settingsOf(client);
  return {
    name: "node-redis",
    replicated: cluster,
    cluster,
    keyPrefix: keyPrefix?.toString() ?? "",
    open: (events, timeouts) =>
      cluster ? openCluster(client, events, timeouts) : openSingle(client, events, timeouts),
  };
}

interface Settings {
  readonly keyPrefix?: string | Buffer | undefined;
  readonly socket?: object | undefined;
  /** Of a cluster: the settings of each of its nodes. */
  readonly defaults?: { readonly socket?: object | undefined } | undefined;
}

function settingsOf(client: object): Settings {
  const { options, _options } = client as { readonly options?: Settings; readonly _options?: Settings };
  return options ?? _options ?? {};
}

/** Of each connection, whoever makes it. */
function nodeOptions({ answerMs }: Timeouts, socket: object | undefined) {
  return {
    // While the server is away calls fail at once, and what was not sent yet is never sent.
    disableOfflineQueue: true,
    // A server that is silent for so long is given up; the pings are what it has to answer when nobody asks.
    pingInterval: Math.ceil(answerMs / 3),
    socket: {
      ...socket,
      connectTimeout: answerMs,
      socketTimeout: answerMs,
      reconnectStrategy: reconnectDelayMs,
    },
  };
}

function openSingle(client: NodeRedisClient, events: RedisEvents, timeouts: Timeouts): RedisConnection {
  const own = nodeOptions(timeouts, settingsOf(client).socket);
  const connect = (onReady: () => void, overrides: object): Single => {
    const settings = { ...own, commandOptions: COMMAND_OPTIONS, ...overrides };
    const one = client.duplicate(settings as never) as Single;
    one.on("error", ignore);
    one.on("ready", onReady);
    one.connect().catch(ignore);
    return one;
  };
  const connectCommands = () => {
    const one = connect(events.connected, {});
    one.on("reconnecting", () => events.lost());
    return { client: one, owing: watchSilence(timeouts, replace) };
  };
  function replace(): void {
    commands.client.destroy();
    events.lost();
    commands = connectCommands();
  }
  let commands = connectCommands();
  let renewedAtMs = Number.NEGATIVE_INFINITY;
  // Subscriptions may wait for their server: they change nothing there. They are renewed before it is ready again.
  const listener = connect(events.listening, { disableOfflineQueue: false });
  const send = (_key: string, command: readonly RedisArgument[]) =>
    commands.owing(commands.client.sendCommand([...command]) as Promise<RedisReply>);
  return {
    send,
    sendBeside: send,
    nodes: async () => [{ address: "the server", send: (command) => send("", command) }],
    ...subscriptionsOn(listener, events),
    renew() {
      // All answers that were under way say the same.
      if (systemClock.monotonicMs() - renewedAtMs < RENEW_EVERY_MS) return;
      renewedAtMs = systemClock.monotonicMs();
      replace();
    },
    close() {
      commands.client.destroy();
      listener.destroy();
    },
  };
}

function openCluster(client: NodeRedisClient, events: RedisEvents, timeouts: Timeouts): RedisConnection {
  const { defaults } = settingsOf(client);
  const settings = {
    defaults: { ...defaults, ...nodeOptions(timeouts, defaults?.socket) },
    commandOptions: COMMAND_OPTIONS,
    useReplicas: false,
    // A redirection was not carried out by whoever gave it, so it is followed; nothing else is sent again.
    maxCommandRedirections: 4,
  };
  const commands = client.duplicate(settings as never) as Whole;
  commands.on("error", ignore);
  commands.on("node-reconnecting", () => events.lost());
  commands.on("node-ready", () => {
    events.changed();
    events.listening();
  });
  let closed = false;
  const connect = (tries: number): void => {
    commands.connect().then(events.connected, () => {
      if (!closed) setTimeout(connect, reconnectDelayMs(tries), tries + 1).unref();
    });
  };
  connect(0);
  const send = (key: string, command: readonly RedisArgument[]) =>
    commands.sendCommand(key, false, [...command]) as Promise<RedisReply>;
  const nodeOf = async (master: Master): Promise<RedisNode> => {
    const node = (await commands.nodeClient(master)).withCommandOptions(COMMAND_OPTIONS);
    return {
      address: master.address,
      send: (command) => node.sendCommand([...command]) as Promise<RedisReply>,
    };
  };
  return {
    send,
    sendBeside: send,
    nodes: () =>
      Promise.all(commands.masters.toSorted((a, b) => (a.address < b.address ? -1 : 1)).map(nodeOf)),
    ...subscriptionsOn(commands, events),
    // The client itself follows what the cluster says of its nodes.
    renew: ignore,
    close() {
      closed = true;
      commands.destroy();
    },
  };
}

/**
 * The client is told which listener it is to drop: told of the channel alone it also drops one that was added before the server
 * had answered, which then hears nothing any more.
 */
function subscriptionsOn(
  client: Duplicate,
  { published }: RedisEvents,
): Pick<RedisConnection, "subscribe" | "unsubscribe"> {
  const listeners = new Map<string, () => void>();
  return {
    async subscribe(key) {
      const listener = (): void => published(key);
      listeners.set(key, listener);
      await client.sSubscribe(key, listener);
    },
    unsubscribe(key) {
      const listener = listeners.get(key);
      if (listener === undefined) return;
      listeners.delete(key);
      void client.sUnsubscribe(key, listener)?.catch(ignore);
    },
  };
}

/** Errors of a connection are met by the calls that they fail; the client reports them once more. */
function ignore(): void {}
