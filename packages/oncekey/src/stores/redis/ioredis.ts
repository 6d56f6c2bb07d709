/**
 * @module
 * The client `ioredis`: one server, Sentinel, or a cluster.
 *
 * Invariant: nothing is asked of the application's client but its settings and a duplicate. What is switched off in the
 * duplicate, and why, stands beside it.
 */
import { configurationError } from "../../core/errors.js";
import { slotOf } from "./cluster-slot.js";
import {
  type RedisCommand,
  type RedisConnection,
  type RedisDriver,
  type RedisEvents,
  type RedisNode,
  type RedisReply,
  reconnectDelayMs,
  type Timeouts,
} from "./driver.js";

/** What is asked of a `Redis` or `Cluster` of ioredis: its settings, and a duplicate. */
export interface IoredisClient {
  readonly options: object;
  duplicate(...args: never[]): object;
  callBuffer(...args: never[]): unknown;
}

/** What is used of a duplicate. */
interface Duplicate {
  readonly options: object;
  callBuffer(command: string, args: unknown[]): Promise<unknown>;
  ssubscribe(channel: string): Promise<unknown>;
  sunsubscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (...args: never[]) => void): unknown;
  disconnect(): void;
}

interface Single extends Duplicate {
  ping(): Promise<unknown>;
}

type Node = Pick<Duplicate, "options" | "callBuffer">;

interface Whole extends Duplicate {
  nodes(role: "master"): readonly Node[];
}

/**
 * The client `ioredis`, also of a cluster (`new Cluster(…)`) or behind Sentinel.
 *
 * The store makes connections of its own from the client's settings, and never uses or closes the client itself.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` if it is no client of ioredis.
 */
export function fromIoredis(client: IoredisClient): RedisDriver {
  const given = client as Partial<IoredisClient & { readonly isCluster: boolean }> | null | undefined;
  if (
    typeof given?.callBuffer !== "function" ||
    typeof given.duplicate !== "function" ||
    given.options === undefined
  ) {
    throw configurationError("The driver ioredis", [
      'it takes a client of ioredis, such as new Redis("redis://127.0.0.1:6379") or new Cluster([…])',
    ]);
  }
  const { keyPrefix, sentinels } = given.options as {
    readonly keyPrefix?: unknown;
    readonly sentinels?: readonly unknown[] | null;
  };
  const prefix = typeof keyPrefix === "string" ? keyPrefix : "";
  const cluster = given.isCluster === true;
  return {
    name: "ioredis",
    cluster,
    replicated: cluster || (sentinels ?? []).length > 0,
    keyPrefix: prefix,
    open: (events, timeouts) =>
      cluster ? openCluster(client, events, timeouts) : openSingle(client, events, timeouts),
  };
}

/** Of each connection, whoever makes it. */
function nodeOptions({ answerMs }: Timeouts) {
  return {
    // What was sent and not answered when a connection broke fails at once, and is never sent again.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // One timer for a connection instead of one for each command; it ends the connection, so nothing lands late.
    socketTimeout: answerMs,
    commandTimeout: undefined,
    connectTimeout: answerMs,
    // What the store reads has to be what it knows, from a server that it may write to.
    stringNumbers: false,
    readOnly: false,
    // The store puts it before its keys itself.
    keyPrefix: "",
    enableAutoPipelining: false,
  };
}

function openSingle(client: IoredisClient, events: RedisEvents, timeouts: Timeouts): RedisConnection {
  const common = {
    ...nodeOptions(timeouts),
    lazyConnect: false,
    retryStrategy: reconnectDelayMs,
    // A primary that has become a replica answers READONLY: connect anew, without sending the command again.
    reconnectOnError: (error: Error) => error.message.startsWith("READONLY"),
  };
  const duplicate = (override: object) => client.duplicate(override as never) as Single;
  const commands = duplicate({ ...common, enableOfflineQueue: false });
  // Subscriptions may wait for their server: they change nothing there.
  const listener = duplicate({ ...common, enableOfflineQueue: true, socketTimeout: undefined });
  for (const one of [commands, listener]) one.on("error", ignore);
  commands.on("ready", () => events.connected());
  commands.on("close", () => events.lost());
  listener.on("smessage", (channel: string) => events.published(channel));
  // Resubscribing comes right after "ready" on the same connection, so a ping's answer comes after it.
  listener.on("ready", () => setImmediate(() => void listener.ping().then(events.listening, ignore)));
  const send = (_key: string, [name, ...args]: RedisCommand) => call(commands, name, args);
  const node: RedisNode = { address: "the server", send: ([name, ...args]) => call(commands, name, args) };
  return {
    send,
    sendBeside: send,
    nodes: async () => [node],
    subscribe: async (key) => void (await listener.ssubscribe(key)),
    unsubscribe: (key) => void listener.sunsubscribe(key).catch(ignore),
    // It does so by itself, see reconnectOnError.
    renew: ignore,
    close() {
      commands.disconnect();
      listener.disconnect();
    },
  };
}

function openCluster(client: IoredisClient, events: RedisEvents, timeouts: Timeouts): RedisConnection {
  const { redisOptions } = client.options as { readonly redisOptions?: object };
  const override = {
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    lazyConnect: false,
    keyPrefix: "",
    scaleReads: "master",
    shardedSubscribers: true,
    clusterRetryStrategy: reconnectDelayMs,
    // A redirection was not carried out by whoever gave it, so it is followed; everything else fails at once.
    maxRedirections: 4,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: 0,
    slotsRefreshTimeout: timeouts.answerMs,
    redisOptions: { ...redisOptions, ...nodeOptions(timeouts) },
  };
  const commands = client.duplicate([] as never, override as never) as Whole;
  commands.on("error", ignore);
  let primaries = "";
  // The client connects to a node when it is first used, and refuses what comes while it does: so each is used at once.
  const greet = (node: Node) => call(node, "PING", []).then(ignore, ignore);
  commands.on("ready", () => void Promise.all(commands.nodes("master").map(greet)).then(events.connected));
  commands.on("+node", (node: Node) => void greet(node).then(events.changed));
  commands.on("-node", () => events.lost());
  commands.on("refresh", () => {
    const before = primaries;
    primaries = commands.nodes("master").map(addressOf).toSorted().join();
    if (primaries !== before) events.changed();
  });
  commands.on("smessage", (channel: string) => events.published(channel));
  for (const event of ["subscribersReady", "refresh"]) commands.on(event, () => events.listening());
  return {
    send: (_key, [name, ...args]) => call(commands, name, args),
    sendBeside(key, [name, ...args]) {
      const node = nodeOfKey(commands, key);
      if (node === undefined) return Promise.reject(new Error("The cluster's node of this key is not known"));
      return call(node, name, args);
    },
    nodes: async () =>
      commands
        .nodes("master")
        .map((node) => ({
          address: addressOf(node),
          send: ([name, ...args]: RedisCommand) => call(node, name, args),
        }))
        .toSorted((a, b) => (a.address < b.address ? -1 : 1)),
    subscribe: async (key) => void (await commands.ssubscribe(key)),
    unsubscribe: (key) => void commands.sunsubscribe(key).catch(ignore),
    // The client itself follows what the cluster says of its nodes.
    renew: ignore,
    close: () => commands.disconnect(),
  };
}

function call(client: Node, name: string, args: unknown[]): Promise<RedisReply> {
  holdTogether((client as { readonly stream?: Corked }).stream);
  return client.callBuffer(name, args) as Promise<RedisReply>;
}

interface Corked {
  cork(): void;
  uncork(): void;
}

const held = new Set<Corked>();

/** The client writes each command by itself. What is sent in one turn of the event loop leaves in one write instead. */
function holdTogether(stream: Corked | undefined): void {
  if (stream === undefined || stream === null || held.has(stream)) return;
  held.add(stream);
  stream.cork();
  process.nextTick(() => {
    held.delete(stream);
    stream.uncork();
  });
}

function nodeOfKey(cluster: Whole, key: string) {
  const { slots } = cluster as { readonly slots?: readonly (readonly string[])[] };
  const address = slots?.[slotOf(key)]?.[0];
  return cluster.nodes("master").find((node) => addressOf(node) === address);
}

function addressOf({ options }: Node): string {
  const { host, port } = options as { readonly host?: string; readonly port?: number };
  return `${host}:${port}`;
}

/** Errors of a connection are met by the calls that they fail; the client reports them once more. */
function ignore(): void {}
