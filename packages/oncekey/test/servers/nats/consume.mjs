/**
 * @module test/servers/nats/consume
 *
 * A consumer of JetStream, in whichever process.
 */
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { handleOnce } from "oncekey/consumers/nats";

/** Short, so that what a killed process held comes again soon. */
export const ACK_WAIT_MS = 1_500;
export const KEY_HEADER = "Order-Id";

/** @type {import("../support/consumers/crashing.mjs").Consume} */
export async function consume({ place, idempotency, options, key, handler }) {
  const { url, name } = JSON.parse(place);
  const connection = await connect({ servers: url, reconnect: false });
  const consumer = await jetstream(connection).consumers.get(name, name);
  /** @param {import("@nats-io/jetstream").JsMsg} message */
  const seen = (message) => ({ key: message.headers?.get(KEY_HEADER) || undefined, body: message.string() });
  const handle = handleOnce(
    idempotency,
    {
      ...options,
      ackWaitMs: ACK_WAIT_MS,
      deadLetter: async (message) => {
        connection.publish(`${name}.dead`, message.data);
        await connection.flush();
      },
      key: (message) => key(seen(message)),
    },
    (message, work) => handler(seen(message), work),
  );
  /** @type {Set<Promise<void>>} */
  const inHand = new Set();
  const messages = await consumer.consume({
    max_messages: 8,
    callback: (message) => {
      const handled = handle(message).finally(() => inHand.delete(handled));
      inHand.add(handled);
    },
  });
  return {
    async stop() {
      await messages.close();
      await Promise.all(inHand);
      await connection.drain();
    },
  };
}
