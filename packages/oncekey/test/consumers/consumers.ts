/**
 * @module
 * A consumer against a store in this process, on a clock moved by hand. A second instance on the same store is another process;
 * one that is left alone in the middle of its work is one that was killed.
 */
import { type ConsumerOptions, type Deliver, handleOnce, type Verdict } from "../../src/consumers/index.js";
import { createIdempotency, type IdempotencyEvent, type Policy, type Work } from "../../src/index.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.js";
import { type Wire, wire } from "../core/processes.js";

export interface Message {
  readonly id?: string | undefined;
  readonly body: string;
  readonly tenant?: string;
}

export const hello: Message = { id: "m1", body: "hello" };

type Options<R> = Partial<ConsumerOptions<Message, R>> & {
  readonly input?: "off" | ((m: Message) => unknown);
};

export function consumers() {
  const clock: ManualClock = manualClock();
  const line: Wire = wire(memoryStore({ clock, sweepIntervalMs: 0 }));
  const events: IdempotencyEvent[] = [];
  const effects: string[] = [];
  const instance = (policy: Omit<Policy, "guarantee"> = {}) =>
    createIdempotency({
      ...policy,
      acceptsLostWrites: true,
      store: line.store,
      clock,
      onEvent: (event) => void events.push(event),
    });
  return {
    clock,
    line,
    events,
    effects,
    instance,
    /** An effect that must not happen twice. */
    charge: (message: Message) => void effects.push(message.body),
    /** Its name is "billing", its key the id, its input the body, its instance a new one, unless said. */
    consumer<R>(
      handler: (message: Message, work: Work) => R | Promise<R>,
      options: Options<R> = {},
      idempotency = instance(),
    ): Deliver<Message, R> {
      return handleOnce(
        idempotency,
        { consumer: "billing", key: (m: Message) => m.id, input: (m: Message) => m.body, ...options },
        handler,
      );
    },
  };
}

/** `"done"`, or what else was said and why. */
export function reasonOf(verdict: Verdict): string {
  return verdict.kind === "done" ? verdict.how : verdict.reason;
}
