/**
 * @module
 * What has to be known of a channel of amqplib: whether it is closed, and what has become of the copies that went out on it.
 *
 * Invariants: a copy counts only if the broker has confirmed it and had a queue for it; whatever else happens, or nothing
 * within the bound, is a no, after which the original stays the broker's. A channel has one listener for each event, however
 * many consumers use it.
 */
import type { Channel, ConfirmChannel, ConsumeMessage, Options } from "amqplib";
import type { Clock } from "../core/clock.js";
import { createHolds, DELIVERIES_HEADER, type Holds } from "./rabbitmq.js";

export type AnyChannel = Pick<Channel | ConfirmChannel, "ack" | "nack" | "on">;

/** Marks a copy, so that it is known again if the broker returns it. */
const COPY_HEADER = "x-oncekey-copy";
/** A broker that is short of memory may take long to confirm; a second copy is a repeat like any other. */
const CONFIRM_TIMEOUT_MS = 10_000;
/** They speak of the first publication: routed by them, a copy would reach everybody again, or be refused. */
const NOT_COPIED = ["CC", "BCC", "x-delivery-count", "x-acquired-count"];

export interface WatchedChannel {
  readonly isClosed: () => boolean;
  /** By then the broker has taken everything back that was not answered for. */
  readonly onClosed: (listener: () => void) => void;
  /** Copies that the broker could put nowhere. */
  readonly returned: Set<string>;
}

const watched = new WeakMap<object, WatchedChannel>();
/** Copies that are on their way, so that only these are remembered as returned. */
const onTheirWay = new Set<string>();

export function watchChannel(channel: AnyChannel): WatchedChannel {
  const known = watched.get(channel);
  if (known !== undefined) return known;
  let closed = false;
  const listeners: (() => void)[] = [];
  const returned = new Set<string>();
  channel.on("close", () => {
    closed = true;
    for (const listener of listeners.splice(0)) listener();
  });
  channel.on("return", ({ properties }) => {
    const mark: unknown = properties.headers?.[COPY_HEADER];
    if (typeof mark === "string" && onTheirWay.has(mark)) returned.add(mark);
  });
  const watch: WatchedChannel = {
    isClosed: () => closed,
    onClosed: (listener) => void listeners.push(listener),
    returned,
  };
  watched.set(channel, watch);
  return watch;
}

/** Holds deliveries of one consumer until their delay, their channel or their consumer ends. */
export function holdsOn(channel: AnyChannel, clock: Clock): Holds {
  const holds = createHolds(clock);
  watchChannel(channel).onClosed(() => holds.end());
  return holds;
}

/** A copy of a message for another queue, with what is said about it. */
export interface Copy {
  readonly queue: string;
  readonly deliveries: number;
  readonly expiresMs?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** @returns whether the broker has it, in a queue. */
export async function sendCopy(
  channel: ConfirmChannel,
  clock: Clock,
  message: ConsumeMessage,
  copy: Copy,
): Promise<boolean> {
  const { returned, isClosed } = watchChannel(channel);
  if (isClosed()) return false;
  const mark = crypto.randomUUID();
  onTheirWay.add(mark);
  try {
    return (await confirmed(channel, clock, message, copy, mark)) && !returned.has(mark);
  } finally {
    onTheirWay.delete(mark);
    returned.delete(mark);
  }
}

function confirmed(
  channel: ConfirmChannel,
  clock: Clock,
  { content, properties }: ConsumeMessage,
  { queue, deliveries, expiresMs, headers }: Copy,
  mark: string,
): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(() => settle(false), CONFIRM_TIMEOUT_MS, false);
    const settle = (yes: boolean) => {
      timer.cancel();
      resolve(yes);
    };
    const kept = Object.entries(properties.headers ?? {}).filter(([name]) => !NOT_COPIED.includes(name));
    const { userId: _, expiration: __, ...rest } = properties;
    const options: Options.Publish = {
      ...rest,
      headers: {
        ...Object.fromEntries(kept),
        ...headers,
        [DELIVERIES_HEADER]: deliveries,
        [COPY_HEADER]: mark,
      },
      // Without it the broker would confirm a copy that it has thrown away because there is no such queue.
      mandatory: true,
      ...(expiresMs === undefined ? {} : { expiration: Math.max(1, Math.round(expiresMs)) }),
    };
    try {
      channel.sendToQueue(queue, content, options, (error: unknown) =>
        settle(error === null || error === undefined),
      );
    } catch {
      settle(false);
    }
  });
}
