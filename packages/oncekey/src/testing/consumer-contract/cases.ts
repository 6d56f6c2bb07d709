/**
 * @module
 * What every consumer has to do while all goes as it should: repeats, batches, messages that never can be handled.
 */
import assert from "node:assert/strict";
import { type ConsumerCase, gate } from "./context.js";

const hello = { key: "m1", body: "hello" };

export const usualCases: readonly ConsumerCase[] = [
  {
    name: "a message is handled once and acknowledged, by a handler that returns nothing",
    why: "a missing result must not look like a missing completion",
    async run({ subject, consume, effects, until, drain }) {
      await consume();
      await subject.publish([hello]);
      await until(() => effects.length === 1, "the message is handled");
      await drain();
      assert.deepEqual(effects, ["hello"]);
    },
  },
  {
    name: "a message that comes again after it was done is acknowledged and not handled",
    why: "a producer that did not hear the broker's confirmation sends again",
    async run({ subject, consume, effects, until, drain }) {
      await consume();
      await subject.publish([hello]);
      await until(() => effects.length === 1, "the message is handled");
      await subject.publish([hello, hello, { key: "m2", body: "last" }]);
      await until(() => effects.includes("last"), "the last message is handled");
      await drain();
      assert.deepEqual(effects, ["hello", "last"]);
      assert.deepEqual(await subject.deadLetters(), []);
    },
  },
  {
    name: "a message that comes again while it is handled is put back, and acknowledged once that is done",
    why: "dropped, it would be lost if the first attempt failed; handled, it would happen twice",
    async run({ subject, consume, effects, until, drain }) {
      const { opened, open } = gate();
      let starts = 0;
      const handler = () => {
        starts += 1;
        return opened;
      };
      await subject.publish([hello]);
      await consume(handler);
      await until(() => starts === 1, "the handler runs");
      await consume(handler);
      await subject.publish([hello, { key: "m2", body: "other" }]);
      await until(() => starts === 2, "the other message is handled meanwhile");
      open();
      await until(() => effects.length === 2, "both are handled");
      await drain();
      assert.deepEqual(effects.toSorted(), ["hello", "other"]);
    },
  },
  {
    name: "a batch with a repeated key is one effect for each key",
    why: "both copies arrive in one prefetch, at the same moment",
    async run({ subject, consume, effects, until, drain }) {
      const keys = ["a", "b", "a", "c", "a", "b"];
      await subject.publish(keys.map((key) => ({ key, body: key })));
      await consume();
      await until(() => new Set(effects).size === 3, "each key is handled");
      await drain();
      assert.deepEqual(effects.toSorted(), ["a", "b", "c"]);
      assert.deepEqual(await subject.deadLetters(), []);
    },
  },
  {
    name: "two consumers of one message both handle it",
    why: "billing must not keep shipping from its work",
    async run({ subject, consume, effects, until, drain }) {
      await subject.publish([hello]);
      const billing = await consume();
      await until(() => effects.length === 1, "the first consumer handles it");
      await billing.stop();
      await subject.publish([hello]);
      await consume(undefined, { consumer: "shipping" });
      await until(() => effects.length === 2, "the second consumer handles it");
      await drain();
    },
  },
  {
    name: "a message whose handler failed comes again",
    why: "a deadlock or a timeout downstream is over in a second",
    async run({ subject, consume, effects, until, drain }) {
      let starts = 0;
      await consume(() => {
        starts += 1;
        if (starts < 3) throw new Error("not yet");
      });
      await subject.publish([hello]);
      await until(() => effects.length === 1, "the third attempt succeeds");
      assert.equal(starts, 3);
      await drain();
      assert.deepEqual(await subject.deadLetters(), []);
    },
  },
  {
    name: "a message that fails as often as it may is a dead letter",
    why: "a poison message must not go round for ever",
    async run({ subject, consume, until, drain }) {
      let starts = 0;
      const fails = () => {
        starts += 1;
        throw new Error("declined");
      };
      await consume(fails, { maxAttempts: 2 });
      await subject.publish([hello]);
      await until(async () => (await subject.deadLetters()).length === 1, "it is a dead letter");
      assert.equal(starts, 2);
      assert.deepEqual(await subject.deadLetters(), ["hello"]);
      await drain();
    },
  },
  {
    name: "other content under a known key is a dead letter, and the first stays done",
    why: "a key used twice is a fault of the producer; acknowledged, its second message would be lost in silence",
    async run({ subject, consume, effects, until, drain }) {
      await consume();
      await subject.publish([hello]);
      await until(() => effects.length === 1, "the message is handled");
      await subject.publish([{ ...hello, body: "other" }, hello]);
      await until(async () => (await subject.deadLetters()).length === 1, "it is a dead letter");
      assert.deepEqual(await subject.deadLetters(), ["other"]);
      await drain();
      assert.deepEqual(effects, ["hello"]);
    },
  },
  {
    name: "a message without a key is a dead letter",
    why: "nothing tells it from its repeats; requeued, it would go round for ever",
    async run({ subject, consume, effects, until, drain }) {
      await consume();
      await subject.publish([{ body: "anonymous" }]);
      await until(async () => (await subject.deadLetters()).length === 1, "it is a dead letter");
      await drain();
      assert.deepEqual(effects, []);
    },
  },
  {
    name: "a message without a key is handled where that is said",
    why: "old producers send none",
    async run({ subject, consume, effects, done, until, settled }) {
      await consume(undefined, { onMissingKey: "run" });
      await subject.publish([{ body: "anonymous" }]);
      await until(() => done() === 1, "it is handled");
      assert.equal(await settled(), 0);
      assert.deepEqual(effects, ["anonymous"]);
    },
  },
];
