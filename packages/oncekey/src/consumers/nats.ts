/**
 * @module oncekey/consumers/nats
 * Messages of NATS JetStream: translation only.
 *
 * Invariants: a message is answered for once, and nothing rejects; as long as a message is in hand the server is told so,
 * often enough for its `ack_wait` and in step with the lease. Streams, consumers and `max_ack_pending`, which bounds what is in
 * hand, are left to the application.
 *
 * Crash points: killed in the handler, after the completion, or with the acknowledgement on its way: the server delivers again.
 * Interleavings: the heartbeat is late, so that the message is delivered elsewhere while it is handled; its dead letter is refused.
 */
import type { JsMsg } from "@nats-io/jetstream";
import type { Clock } from "../core/clock.js";
import { unreachable } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import { durationProblems, isOptions } from "../core/policy-checks.js";
import type { Guarantee } from "../core/record.js";
import type { GuaranteeOf, Work } from "../core/work.js";
import { createDelivery, type Handler } from "./delivery.js";
import { type ConsumerOptions, resolveConsumer } from "./options.js";
import type { DeadLetterReason, Verdict } from "./verdict.js";

export interface NatsOptions<R = unknown, G extends Guarantee = Guarantee>
  extends ConsumerOptions<JsMsg, R, G> {
  /** The `ack_wait` of the JetStream consumer: the server is told three times in it that a message is in hand. @defaultValue 30000 */
  readonly ackWaitMs?: number | undefined;
  /**
   * Keeps a dead letter: publishes it into a stream of its own, say. Rejects, and the message is put back. Without it a dead letter
   * is terminated, and only its place in the stream and an advisory of the server are left of it.
   */
  readonly deadLetter?:
    | ((message: JsMsg, why: { readonly reason: DeadLetterReason; readonly error: unknown }) => unknown)
    | undefined;
}

const SERVERS_ACK_WAIT_MS = 30_000;
/** Two heartbeats may be lost. */
const BEATS = 3;

/**
 * Handles each message once, whether it comes to a callback of `consumer.consume` or out of an iterator. Resolves when the message
 * was answered for, and never rejects.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 * @example
 * const handle = handleOnce(idempotency, { consumer: "billing", key: (m) => m.headers?.get("Nats-Msg-Id") || undefined }, bill);
 * await consumer.consume({ callback: (message) => void handle(message) });
 */
export function handleOnce<
  R,
  Tx,
  G extends Guarantee,
  Held,
  const H extends GuaranteeOf<Tx> = G & GuaranteeOf<Tx>,
>(
  idempotency: Idempotency<Tx, G, boolean, Held>,
  options: NatsOptions<R, H>,
  handler: (message: JsMsg, work: Work<Tx, H, Held>) => R | Promise<R>,
): (message: JsMsg) => Promise<void> {
  // What the types say of transactions holds for what the engine hands over; inside, nobody asks.
  const instance = idempotency as unknown as Idempotency;
  const own = ownProblems(options);
  const consumer = resolveConsumer<JsMsg, R>(instance, options, handler, { hasBody: true, own });
  const deliver = createDelivery(instance, consumer, handler as unknown as Handler<JsMsg, R>, bodyOf);
  const { clock, emit } = instance.internals;
  const { ackWaitMs = SERVERS_ACK_WAIT_MS, deadLetter } = options;
  const periodMs = Math.min(ackWaitMs, consumer.policy.leaseMs) / BEATS;
  const carryOut = async (message: JsMsg, verdict: Verdict): Promise<void> => {
    switch (verdict.kind) {
      case "done":
        return message.ack();
      case "put-back":
        return message.nak(verdict.delayMs);
      case "dead-letter":
        await deadLetter?.(message, { reason: verdict.reason, error: verdict.error });
        // Without the reason: servers before 2.11 take no notice of what ends with one, and deliver again for ever.
        return message.term();
      default:
        return unreachable(verdict);
    }
  };
  return async (message) => {
    const stop = beat(message, periodMs, clock);
    try {
      await carryOut(message, await deliver(message, { deliveries: message.info.deliveryCount }));
    } catch {
      // Its dead letter was not kept, or the connection is closed: it comes again in either case.
      emit({
        type: "warning",
        text: `${consumer.operation}: a message could not be answered for and comes again`,
      });
      giveBack(message, consumer.backoff.mostMs);
    } finally {
      stop();
    }
  };
}

function bodyOf({ data }: JsMsg): Uint8Array {
  return data;
}

/** Tells the server that the message is in hand, until the delivery ends, which is bounded. */
function beat(message: JsMsg, periodMs: number, clock: Clock): () => void {
  const next = () => {
    timer = clock.setTimer(next, periodMs, false);
    try {
      message.working();
    } catch {
      // The connection is closed: the server delivers it elsewhere, and the claim decides who handles it.
    }
  };
  let timer = clock.setTimer(next, periodMs, false);
  return () => timer.cancel();
}

function giveBack(message: JsMsg, delayMs: number): void {
  try {
    message.nak(delayMs);
  } catch {
    // Without a connection the server delivers again by itself, once its `ack_wait` is over.
  }
}

function ownProblems(options: unknown): Readonly<Record<string, string[]>> {
  const { ackWaitMs, deadLetter } = isOptions(options) ? options : {};
  const fits = deadLetter === undefined || typeof deadLetter === "function";
  return {
    ackWaitMs: ackWaitMs === undefined ? [] : durationProblems("ackWaitMs", ackWaitMs),
    deadLetter: fits ? [] : ["deadLetter must be a function"],
  };
}
