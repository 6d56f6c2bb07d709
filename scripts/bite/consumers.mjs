/**
 * @module scripts/bite/consumers
 *
 * Mistakes that can be made with messages.
 */

const verdict = "consumers/verdict.ts";
const delivery = "consumers/delivery.ts";
const verdicts = "src/consumers/verdict.test.ts";
const deliveries = "test/consumers/delivery.test.ts";
const failures = "test/consumers/delivery-failures.test.ts";
const options = "test/consumers/delivery-options.test.ts";

/** @type {import("./mistakes.mjs").Mistake[]} */
export const consumerMistakes = [
  {
    name: "messages: one that is in flight elsewhere is acknowledged, and lost if that attempt fails",
    file: verdict,
    find: `IN_FLIGHT: { back: "in-flight" },`,
    replace: `IN_FLIGHT: "done",`,
    test: deliveries,
  },
  {
    name: "messages: a store that is down looks like work that was done, and messages are dropped",
    file: verdict,
    find: `STORE_UNAVAILABLE: { back: "store-unavailable" },`,
    replace: `STORE_UNAVAILABLE: "done",`,
    test: failures,
  },
  {
    name: "messages: other content under a known key is acknowledged in silence",
    file: verdict,
    find: `KEY_REUSED: { dead: "mismatch" },`,
    replace: `KEY_REUSED: "done",`,
    test: deliveries,
  },
  {
    name: "messages: one without a key goes round for ever",
    file: verdict,
    find: `KEY_MISSING: { dead: "key-missing" },`,
    replace: `KEY_MISSING: { back: "failed" },`,
    test: options,
  },
  {
    name: "messages: a failure that is kept is a dead letter once, and acknowledged when it comes again",
    file: verdict,
    find: `return { kind: "dead-letter", reason: "failed-for-good", error: decoded.error };`,
    replace: `return { kind: "done", how: "repeat", result: undefined };`,
    test: failures,
  },
  {
    name: "messages: what is put back waits longer than the claim in its way holds",
    file: verdict,
    find: "return Math.min(grownMs, Math.max(error.remainingMs ?? mostMs, LEAST_IN_FLIGHT_MS));",
    replace: "return grownMs;",
    test: verdicts,
  },
  {
    name: "messages: all consumers share their keys, and the second one never runs",
    file: "consumers/options.ts",
    find: "operation: `consumer:$" + "{options.consumer}`,",
    replace: 'operation: "consumer",',
    test: deliveries,
  },
  {
    name: "messages: consumers wait where routes do, and their partition stands still",
    file: "consumers/options.ts",
    find: "waitMs: options.onInFlight === undefined ? 0 : undefined,",
    replace: "waitMs: undefined,",
    test: deliveries,
  },
  {
    name: "messages: a handler that never ends keeps its delivery for ever",
    file: delivery,
    find: "return await Promise.race([ended, givenUp]);",
    replace: "return await Promise.race([ended]);",
    test: failures,
  },
  {
    name: "messages: what is not compared by bytes is not compared at all",
    file: delivery,
    find: `if (typeof input === "function") return fingerprintValue(saidAtOnce(input(message)));`,
    replace: `if (typeof input === "function") return NO_FINGERPRINT;`,
    test: deliveries,
  },
  {
    name: "messages: headers that anybody may write are believed to be counts",
    file: "consumers/rabbitmq.ts",
    find: "return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;",
    replace: "return value as number | undefined;",
    test: "src/consumers/rabbitmq.test.ts",
  },
];
