/**
 * @module
 * What every consumer has to do when something goes wrong: its process is killed, its store or its channel goes away, it closes.
 */
import assert from "node:assert/strict";
import { interceptedStore } from "../intercepted-store.js";
import { type ConsumerCase, gate } from "./context.js";

const hello = { key: "m1", body: "hello" };

export const faultCases: readonly ConsumerCase[] = [
  {
    name: "killed between its completion and its acknowledgement: not handled again",
    why: "the broker cannot know that the work was done",
    async run({ subject, consume, effects, until, drain }) {
      await subject.publish([hello]);
      assert.deepEqual(await subject.crash("before-acknowledging"), ["hello"]);
      await consume();
      await subject.publish([{ key: "m2", body: "last" }]);
      await until(() => effects.includes("last"), "the last message is handled");
      await drain();
      assert.deepEqual(effects, ["last"]);
      assert.deepEqual(await subject.deadLetters(), []);
    },
  },
  {
    name: "killed in its handler: handled again once its lease has lapsed",
    why: "a crash must not lose the message, nor block it for a day",
    async run({ subject, consume, effects, until, drain }) {
      await subject.publish([hello]);
      assert.deepEqual(await subject.crash("in-the-handler"), []);
      await consume();
      await until(() => effects.length === 1, "another process handles it");
      await drain();
    },
  },
  {
    name: "stopped in the middle of a handler: one effect, and nothing is left",
    why: "its channel is gone before the handler ends, so the broker delivers the message elsewhere",
    async run({ subject, consume, effects, until, drain }) {
      const { opened, open } = gate();
      let starts = 0;
      const handler = () => {
        starts += 1;
        return opened;
      };
      const first = await consume(handler);
      await subject.publish([hello]);
      await until(() => starts === 1, "the handler runs");
      const stopped = first.stop();
      await consume(handler);
      open();
      await stopped;
      await until(() => effects.length === 1, "the handler ends");
      await drain();
      assert.deepEqual(effects, ["hello"]);
      assert.equal(starts, 1);
    },
  },
  {
    name: "the store is down: nothing is handled, and nothing is lost",
    why: "an outage that looks like a repeat would drop messages; one that looks like a failure would lay them with the dead letters",
    async run({ subject, consume, effects, until, drain, instance }) {
      let down = true;
      let refused = 0;
      const store = interceptedStore(subject.store, (_method, _request, next) => {
        if (!down) return next();
        refused += 1;
        return Promise.reject(new Error("connection refused"));
      });
      await consume(undefined, {}, instance({}, store));
      await subject.publish([hello]);
      await until(() => refused >= 2, "the message came and was put back");
      assert.deepEqual(effects, []);
      down = false;
      await until(() => effects.length === 1, "it is handled");
      await drain();
      assert.deepEqual(await subject.deadLetters(), []);
    },
  },
  {
    name: "the store goes down before the completion: one effect",
    why: "the message is acknowledged, and its completion lands later",
    async run({ subject, consume, effects, until, drain, instance }) {
      let lost = 0;
      const store = interceptedStore(subject.store, (method, _request, next) => {
        if (method !== "complete" || lost > 0) return next();
        lost += 1;
        return Promise.reject(new Error("connection refused"));
      });
      await consume(undefined, {}, instance({}, store));
      await subject.publish([hello, hello]);
      await until(() => effects.length === 1 && lost === 1, "the message is handled");
      await drain();
      assert.deepEqual(effects, ["hello"]);
    },
  },
  {
    name: "closing: what comes is put back for another process",
    why: "a deploy in the middle of the traffic",
    async run({ subject, consume, effects, done, until, settled, drain, instance }) {
      const closing = instance();
      const { opened, open } = gate();
      let starts = 0;
      await consume(
        () => {
          starts += 1;
          return opened;
        },
        {},
        closing,
      );
      await subject.publish([hello]);
      await until(() => starts === 1, "the handler runs");
      const closed = closing.close();
      await subject.publish([{ key: "m2", body: "late" }]);
      open();
      await closed;
      await until(() => done() === 1, "what ran is acknowledged");
      assert.equal(await settled(), 1);
      await consume();
      await until(() => effects.length === 2, "another process takes what came late");
      await drain();
      assert.deepEqual(effects, ["hello", "late"]);
      assert.deepEqual(await subject.deadLetters(), []);
    },
  },
];
