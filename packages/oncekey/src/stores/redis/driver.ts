/**
 * @module
 * The few things that the store needs of a client of Redis, whichever it is.
 *
 * Invariants: the connections are the store's own, made from the configuration of the application's client. A command is
 * sent once, when it is asked for: while its server cannot be reached it is refused at once, it waits in no queue, and it is
 * never sent again by the client. So a call that was refused cannot land later. Knowing the clients is left to
 * `ioredis.ts` and `node-redis.ts`.
 */

/** Part of a command. Clients copy it before they return. */
export type RedisArgument = string | Buffer;

/** The name and the arguments of a command. */
export type RedisCommand = readonly [name: string, ...args: RedisArgument[]];

/** What a server answers: bulk strings as bytes. */
export type RedisReply = null | number | string | Buffer | readonly RedisReply[];

/** A server that holds records of its own: the one there is, or a primary of a cluster. */
export interface RedisNode {
  readonly address: string;
  send(command: RedisCommand): Promise<RedisReply>;
}

export interface RedisConnection {
  /** Sends a command to the server of `key`. */
  send(key: string, command: RedisCommand): Promise<RedisReply>;
  /** Sends a command on the connection that commands of `key` go through, which itself names no key. */
  sendBeside(key: string, command: RedisCommand): Promise<RedisReply>;
  /** The servers that hold records, in a stable order. */
  nodes(): Promise<readonly RedisNode[]>;
  /** Listens to a channel of the server of `key`, which is also its name. Resolves once the server has confirmed it. */
  subscribe(key: string): Promise<void>;
  unsubscribe(key: string): void;
  /** Gives the connection to the server up and makes a new one; what was sent on the old one fails. */
  renew(): void;
  close(): void;
}

/** What the connection tells of by itself. None of these may throw. */
export interface RedisEvents {
  /** There is a connection, for the first time or again: calls can be made. */
  connected(): void;
  /** Other servers than before may hold the records. */
  changed(): void;
  /** A connection broke. */
  lost(): void;
  /** Somebody has published to the channel of `key`. */
  published(key: string): void;
  /** The subscriber was away and listens again: what was published meanwhile is lost. */
  listening(): void;
}

export interface Timeouts {
  /** A server that is silent for so long while it owes an answer is given up. */
  readonly answerMs: number;
}

/** Opens connections to one server, or to the servers of one cluster. Made by `fromIoredis` or `fromNodeRedis`. */
export interface RedisDriver {
  readonly name: string;
  readonly cluster: boolean;
  /** A replica may take the place of a server: a cluster, or Sentinel. */
  readonly replicated: boolean;
  /** What the application's client puts before every key. */
  readonly keyPrefix: string;
  /** Never rejects for a server that is away: it goes on connecting in the background. */
  open(events: RedisEvents, timeouts: Timeouts): RedisConnection;
}

/** How long to wait before connecting again: soon at first, and never so late that a server which is back stands idle. */
export function reconnectDelayMs(tries: number): number {
  return Math.min(25 * 2 ** Math.min(tries, 10), 1_000);
}
