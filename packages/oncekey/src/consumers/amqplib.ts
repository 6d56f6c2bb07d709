/**
 * @module oncekey/consumers/amqplib
 * Messages of RabbitMQ through amqplib: translation only.
 *
 * Invariants: a delivery is answered once, on the channel that it came on, and only while that is open; the callback never
 * throws and never rejects; what cannot be laid where it belongs goes back to its queue. The prefetch of the channel bounds what
 * runs and what is held. Connecting, declaring and consuming are left to the application.
 */
import type { Channel, ConfirmChannel, ConsumeMessage } from "amqplib";
import { unreachable } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import { durationProblems, isOptions } from "../core/policy-checks.js";
import type { Guarantee } from "../core/record.js";
import type { GuaranteeOf, Work } from "../core/work.js";
import { type AnyChannel, type Copy, holdsOn, sendCopy, watchChannel } from "./amqplib-channels.js";
import { createDelivery, type Handler } from "./delivery.js";
import { type ConsumerOptions, resolveConsumer } from "./options.js";
import { type Answer, deliveriesOf, endWith, type Holds, stoppingProblems } from "./rabbitmq.js";
import type { Verdict } from "./verdict.js";

export interface AmqplibOptions<R = unknown, G extends Guarantee = Guarantee>
  extends ConsumerOptions<ConsumeMessage, R, G> {
  /**
   * How a delivery is put back: held unacknowledged for its delay and requeued; or laid as a copy into a queue that gives it back
   * after `delayMs`, by a dead-letter exchange of its own, and acknowledged. The copy needs a confirm channel.
   * @defaultValue `"hold"`
   */
  readonly putBack?: "hold" | { readonly queue: string; readonly delayMs: number } | undefined;
  /**
   * Where dead letters go: to the dead-letter exchange of the queue, without which RabbitMQ throws them away; or as copies into
   * this queue, with the reason in the header `x-oncekey-reason`. The copy needs a confirm channel.
   * @defaultValue `"exchange"`
   */
  readonly deadLetter?: "exchange" | { readonly queue: string } | undefined;
  /** Fires when the consumer stops: what is held goes back at once, and nothing is held any more. */
  readonly stopping?: AbortSignal | undefined;
}

/** More deliveries in hand than this are a channel without a prefetch, on the way to holding a whole queue in memory. */
const MANY_IN_HAND = 1_000;

/**
 * A callback for `channel.consume` that handles each message once.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 * @example
 * await channel.prefetch(20);
 * await channel.consume("orders", handleOnce(idempotency, channel, { consumer: "billing", key: (m) => m.properties.messageId }, bill));
 */
export function handleOnce<
  R,
  Tx,
  G extends Guarantee,
  Held,
  const H extends GuaranteeOf<Tx> = G & GuaranteeOf<Tx>,
>(
  idempotency: Idempotency<Tx, G, boolean, Held>,
  channel: Channel | ConfirmChannel,
  options: AmqplibOptions<R, H>,
  handler: (message: ConsumeMessage, work: Work<Tx, H, Held>) => R | Promise<R>,
): (message: ConsumeMessage | null) => void {
  // What the types say of transactions holds for what the engine hands over; inside, nobody asks.
  const instance = idempotency as unknown as Idempotency;
  const own = ownProblems(channel, options);
  const consumer = resolveConsumer<ConsumeMessage, R>(instance, options, handler, { hasBody: true, own });
  const deliver = createDelivery(
    instance,
    consumer,
    handler as unknown as Handler<ConsumeMessage, R>,
    bodyOf,
  );
  const { clock, emit } = instance.internals;
  const holds = holdsOn(channel, clock);
  endWith(holds, options.stopping);
  const { putBack = "hold", deadLetter = "exchange" } = options;
  const warn = (text: string) => emit({ type: "warning", text: `${consumer.operation}: ${text}` });
  const carrier: Carrier = {
    putBack,
    deadLetter,
    holds,
    copy: (message, copy) => sendCopy(channel as ConfirmChannel, clock, message, copy),
    longestMs: consumer.backoff.mostMs,
    warn,
  };
  let inHand = 0;
  const handle = async (message: ConsumeMessage): Promise<void> => {
    inHand += 1;
    if (inHand === MANY_IN_HAND)
      warn(`${inHand} deliveries are in hand; bound them with channel.prefetch(count)`);
    const deliveries = deliveriesOf(message.properties.headers, message.fields.redelivered);
    const verdict = await deliver(message, { deliveries });
    const answer = await carryOut(carrier, message, deliveries, verdict);
    inHand -= 1;
    give(channel, message, answer);
  };
  return (message) => {
    if (message === null) warn("the broker has cancelled the consumer, which gets no messages any more");
    else void handle(message);
  };
}

/** As many bytes as came, whatever they mean. */
function bodyOf({ content }: ConsumeMessage): Uint8Array {
  return content;
}

interface Carrier {
  readonly putBack: "hold" | { readonly queue: string; readonly delayMs: number };
  readonly deadLetter: "exchange" | { readonly queue: string };
  readonly holds: Holds;
  readonly copy: (message: ConsumeMessage, copy: Copy) => Promise<boolean>;
  readonly longestMs: number;
  readonly warn: (text: string) => void;
}

/** What to answer, once the delay is over or the copy is safe. */
async function carryOut(
  carrier: Carrier,
  message: ConsumeMessage,
  deliveries: number,
  verdict: Verdict,
): Promise<Answer> {
  const { putBack, deadLetter, holds, copy, warn, longestMs } = carrier;
  switch (verdict.kind) {
    case "done":
      return "ack";
    case "put-back": {
      if (putBack === "hold") {
        await holds.hold(verdict.delayMs);
        return "requeue";
      }
      const { queue, delayMs } = putBack;
      if (await copy(message, { queue, deliveries, expiresMs: delayMs })) return "ack";
      warn("a message could not be put into the queue for what is put back; it is held and requeued instead");
      await holds.hold(verdict.delayMs);
      return "requeue";
    }
    case "dead-letter": {
      if (deadLetter === "exchange") return "drop";
      const headers = { "x-oncekey-reason": verdict.reason };
      if (await copy(message, { queue: deadLetter.queue, deliveries, headers })) return "ack";
      warn("a dead letter could not be put into its queue; it is held and requeued instead");
      await holds.hold(longestMs);
      return "requeue";
    }
    default:
      return unreachable(verdict);
  }
}

/** On a channel that is closed the delivery is not ours any more: the broker delivers it again. */
function give(channel: AnyChannel, message: ConsumeMessage, answer: Answer): void {
  if (watchChannel(channel).isClosed()) return;
  try {
    if (answer === "ack") channel.ack(message);
    else channel.nack(message, false, answer === "requeue");
  } catch {
    // The channel is closing, and says so before its event does.
  }
}

function ownProblems(channel: unknown, options: unknown): Readonly<Record<string, string[]>> {
  const { putBack, deadLetter, stopping } = isOptions(options) ? options : {};
  return {
    putBack: putBackProblems(putBack, channel),
    deadLetter: deadLetterProblems(deadLetter, channel),
    stopping: stoppingProblems(stopping),
    channel: isChannel(channel, ["ack", "nack", "on"])
      ? []
      : ["channel, the second argument, must be one of amqplib"],
  };
}

function putBackProblems(putBack: unknown, channel: unknown): string[] {
  if (putBack === undefined || putBack === "hold") return [];
  if (!isOptions(putBack)) return ['putBack must be "hold" or { queue, delayMs }'];
  return [
    ...queueProblems("putBack", putBack.queue, channel),
    ...durationProblems("putBack.delayMs", putBack.delayMs),
  ];
}

function deadLetterProblems(deadLetter: unknown, channel: unknown): string[] {
  if (deadLetter === undefined || deadLetter === "exchange") return [];
  if (!isOptions(deadLetter)) return ['deadLetter must be "exchange" or { queue }'];
  return queueProblems("deadLetter", deadLetter.queue, channel);
}

/** On a channel without confirms nobody would hear that a copy was lost. */
function queueProblems(name: string, queue: unknown, channel: unknown): string[] {
  const problems =
    typeof queue === "string" && queue !== "" ? [] : [`${name}.queue must be the name of a queue`];
  if (isChannel(channel, ["waitForConfirms"])) return problems;
  return [...problems, `${name} needs a confirm channel: connection.createConfirmChannel()`];
}

function isChannel(channel: unknown, methods: readonly string[]): boolean {
  const found = (channel ?? {}) as Readonly<Record<string, unknown>>;
  return methods.every((method) => typeof found[method] === "function");
}
