/**
 * @module
 * What is sent, and the queues that it goes through.
 */
import type { ConfirmChannel } from "amqplib";

export interface Order {
  readonly id: string;
  readonly amount: number;
}

export interface Queues {
  readonly orders: string;
  readonly dead: string;
}

/** Of one run of the demo alone: several may share a broker. */
export function queuesOf(run: string): Queues {
  return { orders: `orders-${run}`, dead: `orders-${run}.dead` };
}

/** Without the dead-letter exchange RabbitMQ would throw away what cannot be handled. */
export async function declare(channel: ConfirmChannel, { orders, dead }: Queues): Promise<void> {
  await channel.assertQueue(dead);
  await channel.assertQueue(orders, { deadLetterExchange: "", deadLetterRoutingKey: dead });
}

/** The key of a message is the order that it is about: a second copy says the same id. */
export function send(channel: ConfirmChannel, { orders }: Queues, order: Order): void {
  channel.sendToQueue(orders, Buffer.from(JSON.stringify(order)), { messageId: order.id, persistent: true });
}
