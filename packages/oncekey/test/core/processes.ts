/**
 * @module
 * Processes that share a store, with their insides in view, on one clock that a test moves.
 *
 * A process is what `createIdempotency` makes, put together from the same parts; `wire` is the line to its store,
 * on which a test can lose, delay or refuse what it likes.
 */
import { createEngine } from "../../src/core/assembly.js";
import type { Clock } from "../../src/core/clock.js";
import type { Engine } from "../../src/core/engine.js";
import { isOncekeyError } from "../../src/core/errors.js";
import type { IdempotencyEvent } from "../../src/core/events.js";
import type { RunOutcome } from "../../src/core/function-results.js";
import { GLOBAL_SCOPE, identify, type KeyInput, partsOf } from "../../src/core/key.js";
import { DEFAULT_LIMITS, type Limits } from "../../src/core/limits.js";
import { perform } from "../../src/core/perform.js";
import type { Policy } from "../../src/core/policy.js";
import { resolvePolicy } from "../../src/core/policy-resolution.js";
import type { RecordKey } from "../../src/core/record.js";
import { type RunOptions, runWithOutcome } from "../../src/core/run.js";
import type { Store } from "../../src/core/store.js";
import { STORE_METHODS, type StoreMethod } from "../../src/core/store-checks.js";
import type { Work } from "../../src/core/work.js";
import { memoryStore } from "../../src/stores/memory/index.js";
import { type Interception, interceptedStore } from "../../src/testing/intercepted-store.js";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.js";

/** What happens on the line instead of a plain call; `next` makes it. */
export type Interference = Interception;

export interface Wire<Tx = never> {
  readonly store: Store<Tx>;
  /** Every call that was sent, in order. */
  readonly sent: { readonly method: StoreMethod; readonly request: unknown }[];
  count(method: StoreMethod): number;
  /** From now on; `undefined` mends the line. */
  on(methods: StoreMethod | readonly StoreMethod[], interference: Interference | undefined): void;
  /** For every method at once. */
  all(interference: Interference | undefined): void;
}

export function wire<Tx = never>(target: Store<Tx>): Wire<Tx> {
  const sent: Wire["sent"] = [];
  const interferences = new Map<StoreMethod, Interference>();
  const store = interceptedStore(target, (method, request, next) => {
    sent.push({ method, request });
    return interferences.get(method)?.(request, next) ?? next();
  });
  const on: Wire["on"] = (methods, interference) => {
    for (const method of [methods].flat() as StoreMethod[]) {
      if (interference === undefined) interferences.delete(method);
      else interferences.set(method, interference);
    }
  };
  return {
    store,
    sent,
    count: (method) => sent.filter((call) => call.method === method).length,
    on,
    all: (interference) => on(STORE_METHODS, interference),
  };
}

/** The call never reaches the store, and the caller hears of it. */
export const refused: Interference = () => Promise.reject(new Error("connection refused"));
/** The call never reaches the store, and nobody answers. */
export const silent: Interference = () => new Promise(() => undefined);
/** The call lands and its answer is lost. */
export const answerLost: Interference = async (_, next) => {
  await next();
  throw new Error("connection reset");
};
/** The call lands and nobody answers. */
export const answerSwallowed: Interference = async (_, next) => {
  await next();
  return new Promise(() => undefined);
};

/** The first `times` calls meet `interference`, the others none. */
export function firstly(times: number, interference: Interference): Interference {
  let met = 0;
  return (request, next) => {
    met += 1;
    return met <= times ? interference(request, next) : next();
  };
}

export interface Gate {
  readonly interference: Interference;
  /** Calls that stand before it. */
  waiting(): number;
  /** Lets the oldest `count` through to the store, all of them by default. */
  open(count?: number): void;
}

/** Calls stand on the line, not yet seen by the store, until the gate is opened. */
export function gate(): Gate {
  const standing: (() => void)[] = [];
  return {
    interference: (_, next) =>
      new Promise((resolve, reject) => {
        standing.push(() => next().then(resolve, reject));
      }),
    waiting: () => standing.length,
    open(count = standing.length) {
      for (const pass of standing.splice(0, count)) pass();
    },
  };
}

export interface Process {
  readonly engine: Engine;
  readonly events: IdempotencyEvent[];
  of<T extends IdempotencyEvent["type"]>(type: T): Extract<IdempotencyEvent, { readonly type: T }>[];
  run<R>(options: CallOptions<R>, fn: (work: Work) => R | Promise<R>): Promise<RunOutcome<R>>;
}

/** The key is `"k"`, the operation `"op"`, the scope global, the input `1`, unless said. */
type CallOptions<R = unknown> = Partial<RunOptions<R>>;

export interface ProcessOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly policy?: Policy | undefined;
  readonly limits?: Partial<Limits> | undefined;
}

export function startProcess({ store, clock, policy = {}, limits = {} }: ProcessOptions): Process {
  const events: IdempotencyEvent[] = [];
  const engine = createEngine({
    store,
    clock,
    limits: { ...DEFAULT_LIMITS, ...limits },
    emit: (event) => {
      events.push(event);
    },
    waitUntil: undefined,
  });
  const facts = { name: store.name, traits: store.traits, transactions: store.begin !== undefined };
  const context = {
    namespace: "",
    policyFor: (options: Policy) => resolvePolicy(facts, options, policy),
    defaultScope: () => GLOBAL_SCOPE,
    perform: <E>(call: Parameters<typeof perform<E>>[1]) => perform(engine, call),
    warn: (text: string) => engine.emit({ type: "warning", text }),
    emit: engine.emit,
  };
  return {
    engine,
    events,
    of: (type) => events.filter((event): event is never => event.type === type),
    run: (options, fn) => runWithOutcome(context, { operation: "op", key: "k", input: 1, ...options }, fn),
  };
}

export interface World {
  readonly clock: ManualClock;
  readonly wire: Wire;
  /** One process on the wire. */
  readonly process: Process;
  /** One more process, on the same wire unless another is given. */
  another(policy?: Policy, on?: Wire): Process;
}

/** A memory store on a manual clock behind a wire, and a process. Every policy takes at-most-once. */
export function world(policy: Policy = {}, limits?: Partial<Limits>): World {
  const clock = manualClock();
  const line = wire(memoryStore({ clock, sweepIntervalMs: 0 }));
  const shared = { acceptsLostWrites: true, ...policy };
  const another: World["another"] = (more, on = line) =>
    startProcess({ store: on.store, clock, policy: { ...shared, ...more }, limits });
  return { clock, wire: line, process: another(), another };
}

export function keyOf(key: KeyInput = "k", operation = "op"): RecordKey {
  return identify("", GLOBAL_SCOPE, operation, partsOf(key) ?? []).key;
}

export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
}

export function deferred<T = void>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** The code of the refusal that `promise` ends with; its result if it does not. */
export async function codeOf(promise: unknown): Promise<unknown> {
  try {
    return await promise;
  } catch (error) {
    return isOncekeyError(error) ? error.code : error;
  }
}

/** Nothing runs, nobody waits, nothing is left to do in the background. */
export function leftovers({ engine }: Process) {
  return { here: engine.here.size, waiting: engine.waiting.size() };
}

/** Work that notes its starts, each of which ends when the test says so. */
export function slowWork(): { readonly starts: Deferred<string>[]; work(): Promise<string> } {
  const starts: Deferred<string>[] = [];
  return {
    starts,
    work() {
      const end = deferred<string>();
      starts.push(end);
      return end.promise;
    },
  };
}

/** What failing work throws. */
export const declined = new Error("declined");

/** Starts work that hands out its context and ends when the test says so. */
export async function started(
  process: Process,
  { clock }: World,
  options: Parameters<Process["run"]>[0] = {},
) {
  const seen = deferred<Work>();
  const end = deferred<string>();
  const call = process.run(options, (work) => {
    seen.resolve(work);
    return end.promise;
  });
  // Whoever awaits it later still gets what it rejects with.
  call.catch(() => undefined);
  await clock.settle();
  return { call, work: await seen.promise, end };
}

/** The code that `assertHeld` throws. */
export const asserted = (work: Work): unknown => {
  try {
    return work.assertHeld();
  } catch (error) {
    return (error as { code: unknown }).code;
  }
};
