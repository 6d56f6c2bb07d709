/**
 * @module
 * What a case of the contract of consumers gets: a real broker with a queue of its own, consumers on it, and what they did.
 */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { createIdempotency, type Idempotency } from "../../core/idempotency.js";
import type { KeyInput, Missing } from "../../core/key.js";
import type { Policy } from "../../core/policy.js";
import type { Store } from "../../core/store.js";
import type { Work } from "../../core/work.js";

/** A message as the contract sees it; the binding says where its client carries the key. */
export interface ContractMessage {
  readonly key?: string | undefined;
  readonly body: string;
}

/** What the contract asks of a consumer; the binding hands it on to the adapter's own options. */
export interface ContractConsumer extends Policy {
  readonly consumer: string;
  readonly onMissingKey?: "reject" | "run" | undefined;
  readonly backoff: { readonly firstMs: number; readonly mostMs: number };
  readonly onVerdict?: ((verdict: { readonly kind: string }) => void) | undefined;
}

export type ContractHandler = (message: ContractMessage, work: Work) => void | Promise<void>;

/** A consumer that runs. */
export interface Consuming {
  /** Takes no more messages, and gives back what it has not answered for. Resolves when its client is gone. */
  stop(): Promise<void>;
}

/** Where a worker process of the binding kills itself, by SIGKILL. */
export type CrashPoint = "in-the-handler" | "before-acknowledging";

/** How one client is put under the contract: a fresh queue with its dead letters, and a store that worker processes share. */
export interface ConsumerSubject {
  readonly store: Store;
  /** Resolves when the broker has them, in this order. */
  publish(messages: readonly ContractMessage[]): Promise<void>;
  /** Starts a consumer with a connection of its own, which takes several messages at a time; resolves when it listens. */
  consume(
    idempotency: Idempotency,
    options: ContractConsumer,
    key: (message: ContractMessage) => KeyInput | Missing,
    handler: ContractHandler,
  ): Promise<Consuming>;
  /**
   * Runs a process that consumes as `CRASHING_CONSUMER` says, until it has killed itself at the point; then resolves to the
   * bodies whose effect it had by then.
   */
  crash(at: CrashPoint): Promise<readonly string[]>;
  /** The bodies of all dead letters so far. */
  deadLetters(): Promise<readonly string[]>;
  /** How many messages still are to be delivered. Asked when no consumer runs. */
  left(): Promise<number>;
  close(): Promise<void>;
}

export interface ConsumerContractSetup {
  /** Called once for each case. */
  open(): Promise<ConsumerSubject>;
  /** Cases that cannot pass, by name, each with its reason. One that would pass all the same is a failure. */
  readonly waivers?: Readonly<Record<string, string>> | undefined;
}

/** Short, so that a case sees what comes after a lapse. */
const SHORT = { leaseMs: 2_000, storeTimeoutMs: 500 } as const;
const BILLING = { consumer: "billing", backoff: { firstMs: 50, mostMs: 500 }, ...SHORT } as const;
/** The consumer of the process that crashes: the same as those of the cases. */
export const CRASHING_CONSUMER: ContractConsumer = BILLING;

export interface ConsumerContext {
  readonly subject: ConsumerSubject;
  /** Bodies that were handled to the end, in order: an effect that must not happen twice. */
  readonly effects: string[];
  /** How many deliveries are to be acknowledged, or have been. */
  done(): number;
  /** Starts a consumer whose handler notes its effect; `handler` is called before. */
  consume(
    handler?: ContractHandler,
    options?: Partial<ContractConsumer>,
    on?: Idempotency,
  ): Promise<Consuming>;
  instance(policy?: Policy, store?: Store): Idempotency;
  /** Waits, with a bound, until it holds. */
  until(holds: () => boolean | Promise<boolean>, what: string): Promise<void>;
  /** Stops every consumer and looks at what is left in the queue. */
  settled(): Promise<number>;
  /** Consumes until nothing is left. What is handled on the way is an effect like any other. */
  drain(): Promise<void>;
}

export interface ConsumerCase {
  readonly name: string;
  readonly why: string;
  run(context: ConsumerContext): Promise<void>;
}

/** Runs one case on a subject of its own and cleans up after it, whatever its end. */
export async function runConsumerCase(one: ConsumerCase, setup: ConsumerContractSetup): Promise<void> {
  const subject = await setup.open();
  const consuming: Consuming[] = [];
  const instances: Idempotency[] = [];
  const effects: string[] = [];
  let done = 0;
  const stopAll = async () => {
    await Promise.all(consuming.splice(0).map((each) => each.stop()));
  };
  const instance: ConsumerContext["instance"] = (policy = {}, store = subject.store) => {
    const made = createIdempotency({ ...policy, store }) as unknown as Idempotency;
    instances.push(made);
    return made;
  };
  const onVerdict: ContractConsumer["onVerdict"] = ({ kind }) => {
    if (kind === "done") done += 1;
  };
  const context: ConsumerContext = {
    subject,
    effects,
    done: () => done,
    instance,
    async consume(handler, options, on = instance()) {
      const started = await subject.consume(
        on,
        { ...BILLING, ...options, onVerdict },
        ({ key }) => key,
        async (message, work) => {
          await handler?.(message, work);
          effects.push(message.body);
        },
      );
      let stopped: Promise<void> | undefined;
      const consumer: Consuming = {
        stop() {
          stopped ??= started.stop();
          return stopped;
        },
      };
      consuming.push(consumer);
      return consumer;
    },
    until,
    async settled() {
      await stopAll();
      return subject.left();
    },
    async drain() {
      for (let rounds = 0; (await context.settled()) > 0; rounds += 1) {
        assert.ok(rounds < MOST_ROUNDS, "the queue is never empty");
        const before = done;
        await context.consume();
        await until(() => done > before, "one more message is acknowledged");
      }
    },
  };
  try {
    await one.run(context);
  } finally {
    await stopAll();
    await Promise.all(instances.map((each) => each.close({ graceMs: 0 })));
    await subject.close();
  }
}

const MOST_POLLS = 1_000;
const MOST_ROUNDS = 20;

async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let polls = 0; !(await holds()); polls += 1) {
    assert.ok(polls < MOST_POLLS, `never happened: ${what}`);
    await delay(20);
  }
}

/** A gate that a handler waits at until the case opens it. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}
