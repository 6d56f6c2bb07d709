/**
 * @module
 * One instance: a store, a policy, and everything that can be done with them.
 *
 * Invariants: configuration mistakes are all found here, when it is made; it starts no work after `close`.
 */

import { type CloseReport, closeEngine, createEngine } from "./assembly.js";
import type { Awaitable } from "./awaitable.js";
import type { Call, Performed } from "./call.js";
import { type Clock, systemClock } from "./clock.js";
import { configurationError } from "./errors.js";
import { type EventListener, emitterOf } from "./events.js";
import { encodeDone, type RunOutcome } from "./function-results.js";
import { argumentProblems, factsOf, instanceProblems } from "./instance-checks.js";
import {
  GLOBAL_SCOPE,
  type GlobalScope,
  type KeyInput,
  MISSING_SCOPE,
  type Missing,
  type ScopeValue,
  saysGlobal,
  scopeOf,
} from "./key.js";
import type { LimitOptions, Limits } from "./limits.js";
import type { ListOptions, OperatorNote, OperatorVerdict, RecordTarget } from "./operator-input.js";
import {
  type Desk,
  find,
  forget,
  type KnownOperation,
  list,
  noteOperation,
  type OperatorOutcome,
  type ReconcileReport,
  reconcileUnknown,
  release,
  resolve,
} from "./operators.js";
import { perform } from "./perform.js";
import { layerPolicies, POLICY_NAMES, type Policy, type ResolvedPolicy, type StoreFacts } from "./policy.js";
import { resolveLimits, unknownOptions } from "./policy-checks.js";
import { resolvePolicy } from "./policy-resolution.js";
import type { Guarantee, RecordInfo } from "./record.js";
import { workAround } from "./reentry.js";
import { type Compared, type RunOptions, runWithOutcome, type ScopeSaid } from "./run.js";
import type { RecordPage, Store } from "./store.js";
import { createWithin, type Within } from "./within.js";
import { attachedWork, type GuaranteeOf, promised, type Work } from "./work.js";

/** A scope that needs no carrier: the word, `GLOBAL_SCOPE`, or a function that finds the caller by itself (`AsyncLocalStorage`). */
export type DefaultScope = "global" | GlobalScope | (() => KeyInput | Missing);

export interface IdempotencyOptions<
  Tx = unknown,
  G extends Guarantee = Guarantee,
  S extends DefaultScope | undefined = DefaultScope | undefined,
  Held = never,
> extends Policy {
  /** Where records are kept. Its maker closes it, after the instance. */
  readonly store: Store<Tx, Held>;
  /** What callers are promised, checked against what the store can give. @defaultValue `"at-least-once"` */
  readonly guarantee?: G | undefined;
  /** Whose keys they are, where a call or route does not say. */
  readonly scope?: S;
  /** Keeps the records of several services apart in one store. @defaultValue `""` */
  readonly namespace?: string | undefined;
  /** Gets every event, synchronously. */
  readonly onEvent?: EventListener | undefined;
  /** @defaultValue the platform's clock */
  readonly clock?: Clock | undefined;
  /** Bounds of queues, waits and bodies; what is not set is as in `DEFAULT_LIMITS`. */
  readonly limits?: LimitOptions | undefined;
  /**
   * Keeps the runtime alive for what goes on after an answer (completions that are being retried), where it would
   * stop otherwise: `waitUntil` of Workers, `after` of Next.js.
   */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined;
}

export interface Idempotency<
  Tx = unknown,
  G extends Guarantee = Guarantee,
  Scoped extends boolean = boolean,
  Held = unknown,
> {
  /**
   * Runs `fn` unless the key has a result already, and answers with the result.
   *
   * @throws OncekeyError with the code of the refusal; what `fn` throws otherwise, which frees the key (or, under
   * at-most-once, makes the outcome unknown); `ReplayedError` where a throw was kept.
   */
  run<R, const H extends GuaranteeOf<Tx> = G & GuaranteeOf<Tx>>(
    options: RunOptions<R, H> & ScopeSaid<Scoped> & Compared,
    fn: (work: Work<Tx, H, Held>) => R | Promise<R>,
  ): Promise<R>;
  /** `run`, and whether the result is this call's own. */
  runWithOutcome<R, const H extends GuaranteeOf<Tx> = G & GuaranteeOf<Tx>>(
    options: RunOptions<R, H> & ScopeSaid<Scoped> & Compared,
    fn: (work: Work<Tx, H, Held>) => R | Promise<R>,
  ): Promise<RunOutcome<R>>;
  /**
   * The work of the handler that was given `carrier` (a request or context of its framework).
   *
   * @param guarantee what the handler counts on, where a route has another than the instance.
   * @throws OncekeyError `NOT_PROTECTED` outside a protected handler; `GUARANTEE_UNSUPPORTED` on a route that promises less.
   */
  workOf<const H extends GuaranteeOf<Tx> = G & GuaranteeOf<Tx>>(
    carrier: object,
    guarantee?: H,
  ): Work<Tx, H, Held>;
  /**
   * The work of the function that is being run around the caller: by `run`, by a wrapped function, by a decorated method, and in
   * whatever they call. The innermost, if there are several. It is followed through promises, which a browser cannot do.
   *
   * @param guarantee what the caller counts on, where a call has another than the instance.
   * @throws OncekeyError `NOT_PROTECTED` outside of such a function; `GUARANTEE_UNSUPPORTED` in one that is promised less.
   */
  currentWork<const H extends GuaranteeOf<Tx> = G & GuaranteeOf<Tx>>(guarantee?: H): Work<Tx, H, Held>;
  /**
   * `run` inside a transaction that the caller holds: claim, rows and completion are there when the caller commits. One handle
   * for one transaction. Does not compile for a store whose records no transaction of yours can reach.
   *
   * @throws OncekeyError `GUARANTEE_UNSUPPORTED` for such a store.
   */
  within<Given extends Held>(transaction: Given): Within<Held, Scoped, Given>;

  /** Looks at one record. */
  find(target: RecordTarget): Promise<RecordInfo | undefined>;
  /** Pages through records, by scope, operation, state and age. */
  list(options?: ListOptions): Promise<RecordPage>;
  /** Says that the work was not done, so the key is free. @throws OncekeyError `CLAIM_LIVE`, `RECORD_CHANGED`. */
  release(target: RecordTarget, note: OperatorNote): Promise<OperatorOutcome>;
  /** Removes the record as if the key had never been seen. @throws OncekeyError `CLAIM_LIVE`, `RECORD_CHANGED`. */
  forget(target: RecordTarget, note: OperatorNote): Promise<OperatorOutcome>;
  /** Says how an operation ended whose outcome is unknown. @throws OncekeyError `CLAIM_LIVE`, `RECORD_CHANGED`. */
  resolve(target: RecordTarget, verdict: OperatorVerdict, note: OperatorNote): Promise<OperatorOutcome>;
  /**
   * Asks `onLapsed` about every outcome that is unknown, once each. Run it from a timer, on any number of processes.
   * @throws OncekeyError `STORE_UNAVAILABLE` as soon as the store does not answer; what was found out until then is on record.
   */
  reconcileUnknown(): Promise<ReconcileReport>;

  /**
   * Refuses new calls with `CLOSING`, answers those who wait, lets running work finish and its completions land. What is
   * left after `graceMs` (10 000) lapses by itself; nothing is released. The store stays open: it is its maker's to close.
   * Called again it answers with the first call's report.
   */
  close(options?: { readonly graceMs?: number | undefined }): Promise<CloseReport>;

  /** Whether calls and routes may leave `scope` out. */
  readonly scoped: Scoped;
  /** For adapters of this package; not for applications. */
  readonly internals: Internals;
}

/** What an adapter needs of an instance. */
export interface Internals {
  readonly namespace: string;
  readonly clock: Clock;
  readonly emit: EventListener;
  readonly defaultScope: (() => ScopeValue) | undefined;
  readonly facts: StoreFacts;
  /** The instance's own layer. */
  readonly policy: Policy;
  readonly limits: Limits;
  policyFor(...layers: readonly (Policy | undefined)[]): ResolvedPolicy;
  perform<E>(call: Call<E>): Awaitable<Performed<E>>;
}

const DEFAULT_GRACE_MS = 10_000;
const NOT_AROUND =
  "No protected function of this instance is being run around this call. A handler of a route finds its work with workOf(request).";

/**
 * Makes an instance.
 *
 * @throws OncekeyError `CONFIGURATION_INVALID` listing every problem: durations, contradictions, a guarantee that
 * the store cannot give.
 */
export function createIdempotency<
  Tx,
  const G extends GuaranteeOf<Tx> = "at-least-once",
  const S extends DefaultScope | undefined = undefined,
  Held = never,
>(options: IdempotencyOptions<Tx, G, S, Held>): Idempotency<Tx, G, S extends undefined ? false : true, Held> {
  const unusable = argumentProblems(options);
  if (unusable.length > 0) throw configurationError("Idempotency", unusable);
  const {
    store,
    scope,
    namespace = "",
    onEvent,
    clock = systemClock,
    limits: givenLimits,
    waitUntil,
    ...given
  } = options;
  const { limits, problems } = resolveLimits(givenLimits);
  const policy = layerPolicies(given, { maxResultBytes: limits.maxResultBytes });
  problems.push(...unknownOptions(given), ...instanceProblems(options, policy));
  if (problems.length > 0) throw configurationError("Idempotency", problems);
  const facts = factsOf(store);

  const engine = createEngine({ store, clock, limits, emit: emitterOf(onEvent), waitUntil });
  for (const text of store.warnings ?? []) engine.emit({ type: "warning", text });
  const resolved = resolvePolicy(facts, policy);
  const fallback: KnownOperation = {
    policy: resolved,
    encodeDone: (result) => encodeDone(undefined, resolved.maxResultBytes, result),
  };
  const scopeFound = scope === undefined ? undefined : () => defaultScope(scope);
  const desk: Desk = { engine, namespace, defaultScope: scopeFound, fallback, operations: new Map() };
  const internals: Internals = {
    namespace,
    clock,
    emit: engine.emit,
    defaultScope: scopeFound,
    facts,
    policy,
    limits,
    policyFor: (...layers) => (layers.some(hasPolicy) ? resolvePolicy(facts, ...layers, policy) : resolved),
    perform(call) {
      noteOperation(desk, call);
      return perform(engine, call);
    },
  };
  const runContext = {
    ...internals,
    defaultScope: internals.defaultScope ?? (() => MISSING_SCOPE),
  };
  // The public types say which guarantee gives which transaction; the engine hands over what the store opened.
  const run = (runOptions: RunOptions, fn: unknown) =>
    runWithOutcome(runContext, runOptions, fn as (work: Work) => unknown);
  let closed: Promise<CloseReport> | undefined;
  const instance: Idempotency<Tx, Guarantee, boolean, Held> = {
    run: async (runOptions, fn) => (await run(runOptions as RunOptions, fn)).result as never,
    runWithOutcome: (runOptions, fn) => run(runOptions as RunOptions, fn) as never,
    workOf: (carrier, guarantee) => attachedWork(carrier, guarantee) as never,
    currentWork: (guarantee) => promised(workAround(engine), guarantee, NOT_AROUND) as never,
    within: (transaction: unknown) => createWithin(engine, runContext, transaction) as never,
    find: (target) => find(desk, target),
    list: (listOptions = {}) => list(desk, listOptions),
    release: (target, note) => release(desk, target, note),
    forget: (target, note) => forget(desk, target, note),
    resolve: (target, verdict, note) => resolve(desk, target, verdict, note),
    reconcileUnknown: () => reconcileUnknown(desk),
    close({ graceMs = DEFAULT_GRACE_MS } = {}) {
      closed ??= closeEngine(engine, graceMs);
      return closed;
    },
    scoped: scope !== undefined,
    internals,
  };
  return instance as Idempotency<Tx, G, S extends undefined ? false : true, Held>;
}

/** Options of a call that are not policy do not make it resolve a policy of its own. */
function hasPolicy(layer: Policy | undefined): boolean {
  return Object.entries(layer ?? {}).some(([name, value]) => value !== undefined && POLICY_NAMES.has(name));
}

function defaultScope(scope: DefaultScope): ScopeValue {
  return saysGlobal(scope) ? GLOBAL_SCOPE : scopeOf(scope());
}
