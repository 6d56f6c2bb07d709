/**
 * @module oncekey/consumers
 * Messages of any broker, handled once: the verdict on a delivery, for a client that has no adapter of its own here.
 *
 * Invariant: what becomes of a delivery is decided in one place for all clients; carrying it out is left to the caller.
 */
import type { Idempotency } from "../core/idempotency.js";
import type { Guarantee } from "../core/record.js";
import type { GuaranteeOf, Work } from "../core/work.js";
import { createDelivery, type Deliver, type Handler } from "./delivery.js";
import { type ConsumerOptions, resolveConsumer, type SaysInput } from "./options.js";

export type { Arrival, Deliver } from "./delivery.js";
export type { ConsumerOptions } from "./options.js";
export type { DeadLetterReason, PutBackReason, Verdict } from "./verdict.js";

/**
 * Handles messages once each, and says what is to become of every delivery.
 *
 * The function it returns never rejects and answers within `maxRunMs` and one lease, or the wait of `onInFlight` more.
 * Acknowledge on `"done"`, deliver again after `delayMs` on `"put-back"`, lay it with the dead letters on `"dead-letter"`. If
 * the process dies before that is done, the message comes again, and nothing of it is lost or repeated.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 */
export function handleOnce<
  M,
  R,
  Tx,
  G extends Guarantee,
  Held,
  const H extends GuaranteeOf<Tx> = G & GuaranteeOf<Tx>,
>(
  idempotency: Idempotency<Tx, G, boolean, Held>,
  options: ConsumerOptions<M, R, H> & SaysInput<M>,
  handler: (message: M, work: Work<Tx, H, Held>) => R | Promise<R>,
): Deliver<M, R> {
  // What the types say of transactions holds for what the engine hands over; inside, nobody asks.
  const instance = idempotency as unknown as Idempotency;
  const consumer = resolveConsumer<M, R>(instance, options, handler, { hasBody: false });
  return createDelivery(instance, consumer, handler as unknown as Handler<M, R>);
}
