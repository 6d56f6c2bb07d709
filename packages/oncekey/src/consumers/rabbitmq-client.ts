/**
 * @module oncekey/consumers/rabbitmq-client
 * Messages of RabbitMQ through rabbitmq-client: translation only.
 *
 * Invariants: the handler never rejects, since the client would answer for it; what is put back is held for its delay first, and
 * answered for by the client, on the channel that it came on. `concurrency` and `qos` of the consumer bound what runs and what is held.
 */
import type { AsyncMessage, ConsumerStatus } from "rabbitmq-client";
import { unreachable } from "../core/errors.js";
import type { Idempotency } from "../core/idempotency.js";
import { isOptions } from "../core/policy-checks.js";
import type { Guarantee } from "../core/record.js";
import type { GuaranteeOf, Work } from "../core/work.js";
import { createDelivery, type Handler } from "./delivery.js";
import { type ConsumerOptions, resolveConsumer } from "./options.js";
import { type Answer, createHolds, deliveriesOf, endWith, type Holds, stoppingProblems } from "./rabbitmq.js";
import type { Verdict } from "./verdict.js";

export interface RabbitmqClientOptions<R = unknown, G extends Guarantee = Guarantee>
  extends ConsumerOptions<AsyncMessage, R, G> {
  /** Fires when the consumer stops: what is held goes back at once, so that `consumer.close()` need not wait for it. */
  readonly stopping?: AbortSignal | undefined;
}

/** `ConsumerStatus` of the client, which is not loaded here. */
const STATUS = { ack: 0, requeue: 1, drop: 2 } as const satisfies Record<Answer, number>;

/**
 * A handler for `rabbit.createConsumer` that handles each message once. Repeats are compared by the body as the client has read it.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 * @example
 * rabbit.createConsumer({ queue: "orders", qos: { prefetchCount: 20 } }, handleOnce(idempotency, { consumer: "billing", key: (m) => m.messageId }, bill));
 */
export function handleOnce<
  R,
  Tx,
  G extends Guarantee,
  Held,
  const H extends GuaranteeOf<Tx> = G & GuaranteeOf<Tx>,
>(
  idempotency: Idempotency<Tx, G, boolean, Held>,
  options: RabbitmqClientOptions<R, H>,
  handler: (message: AsyncMessage, work: Work<Tx, H, Held>) => R | Promise<R>,
): (message: AsyncMessage) => Promise<ConsumerStatus> {
  // What the types say of transactions holds for what the engine hands over; inside, nobody asks.
  const instance = idempotency as unknown as Idempotency;
  const { stopping } = isOptions(options) ? (options as RabbitmqClientOptions<R>) : {};
  const own = { stopping: stoppingProblems(stopping) };
  const compared =
    isOptions(options) && (options.input ?? "body") === "body" ? { ...options, input: bodyOf } : options;
  const consumer = resolveConsumer<AsyncMessage, R>(instance, compared, handler, { hasBody: true, own });
  const deliver = createDelivery(instance, consumer, handler as unknown as Handler<AsyncMessage, R>);
  const holds = createHolds(instance.internals.clock);
  endWith(holds, stopping);
  return async (message) => {
    const deliveries = deliveriesOf(message.headers, message.redelivered);
    const answer = await carryOut(holds, await deliver(message, { deliveries }));
    return STATUS[answer];
  };
}

/** The client has parsed what says that it is JSON, so the bytes are gone; as data it is the same, whatever the order of its members. */
function bodyOf({ body }: AsyncMessage): unknown {
  return body;
}

async function carryOut(holds: Holds, verdict: Verdict): Promise<Answer> {
  switch (verdict.kind) {
    case "done":
      return "ack";
    case "put-back":
      await holds.hold(verdict.delayMs);
      return "requeue";
    case "dead-letter":
      return "drop";
    default:
      return unreachable(verdict);
  }
}
