/**
 * @module test/servers/rabbitmq/apps/clients
 *
 * How each client of RabbitMQ consumes, in whichever process.
 */

/**
 * @typedef {import("oncekey/testing").ContractMessage} Message
 *
 * @typedef {object} Consumption
 * @property {string} url
 * @property {string} queue its companions are `….later` and `….dead`
 * @property {import("oncekey").Idempotency} idempotency
 * @property {import("oncekey/testing").ContractConsumer} options
 * @property {(message: Message) => import("oncekey").KeyInput | import("oncekey").Missing} key
 * @property {import("oncekey/testing").ContractHandler} handler
 *
 * @typedef {(consumption: Consumption) => Promise<import("oncekey/testing").Consuming>} Consume
 */

const PREFETCH = 8;

/**
 * @param {boolean} withQueues what is put back and what is dead goes into queues of its own, as copies
 * @returns {Consume}
 */
function throughAmqplib(withQueues) {
  return async ({ url, queue, idempotency, options, key, handler }) => {
    const [{ connect }, { handleOnce }] = await Promise.all([
      import("amqplib"),
      import("oncekey/consumers/amqplib"),
    ]);
    const connection = await connect(url);
    connection.on("error", () => {});
    const channel = await connection.createConfirmChannel();
    await channel.prefetch(PREFETCH);
    const queues = /** @type {const} */ ({
      putBack: { queue: `${queue}.later`, delayMs: 200 },
      deadLetter: { queue: `${queue}.dead` },
    });
    /** @param {import("amqplib").ConsumeMessage} message */
    const seen = ({ content, properties: { messageId } }) => ({ key: messageId, body: content.toString() });
    const callback = handleOnce(
      idempotency,
      channel,
      { ...options, ...(withQueues ? queues : {}), key: (message) => key(seen(message)) },
      (message, work) => handler(seen(message), work),
    );
    await channel.consume(queue, callback);
    return {
      async stop() {
        await channel.close();
        await connection.close();
      },
    };
  };
}

/** @type {Consume} */
async function throughRabbitmqClient({ url, queue, idempotency, options, key, handler }) {
  const [{ Connection }, { handleOnce }] = await Promise.all([
    import("rabbitmq-client"),
    import("oncekey/consumers/rabbitmq-client"),
  ]);
  const connection = new Connection(url);
  connection.on("error", () => {});
  const stopping = new AbortController();
  /** @param {import("rabbitmq-client").AsyncMessage} message */
  const seen = ({ body, messageId }) => ({ key: messageId, body: String(body) });
  const consumer = connection.createConsumer(
    { queue, queueOptions: { passive: true }, qos: { prefetchCount: PREFETCH } },
    handleOnce(
      idempotency,
      { ...options, stopping: stopping.signal, key: (message) => key(seen(message)) },
      (message, work) => handler(seen(message), work),
    ),
  );
  await new Promise((resolve, reject) => {
    consumer.once("ready", () => resolve(undefined));
    consumer.once("error", reject);
  });
  consumer.on("error", () => {});
  return {
    async stop() {
      stopping.abort();
      await consumer.close();
      await connection.close();
    },
  };
}

export const clients = {
  amqplib: throughAmqplib(false),
  "amqplib with queues": throughAmqplib(true),
  "rabbitmq-client": throughRabbitmqClient,
};

/** @typedef {keyof typeof clients} ClientName */
