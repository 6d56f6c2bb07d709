/**
 * @module
 * `idempotency.within(transaction)`: functions protected by a key, inside a transaction that the caller holds.
 *
 * Invariants: calls on one handle take turns, since a transaction is one line of statements; a call inside another's work is
 * part of that one. Events of what is not committed yet are kept back, bounded in number, until the caller says that it is.
 */
import type { Call } from "./call.js";
import type { Engine } from "./engine.js";
import { configurationError, isOncekeyError, OncekeyError } from "./errors.js";
import type { EventListener, IdempotencyEvent } from "./events.js";
import { outcomeOf, type RunOutcome, type Settled } from "./function-results.js";
import { type Joined, performJoined } from "./joining.js";
import { MAX_JOINED_KEYS, MAX_KEPT_BACK_EVENTS } from "./limits.js";
import { finishedAs } from "./outcome.js";
import type { Policy } from "./policy.js";
import {
  type Compared,
  callOf,
  type Identifying,
  RUN_NAMES,
  type RunOptions,
  type ScopeSaid,
} from "./run.js";
import { createLine } from "./turns.js";
import type { Work } from "./work.js";

/** What goes without saying in somebody else's transaction, or has no meaning there. */
const NOT_SAID = [
  "guarantee",
  "onLapsed",
  "reconcileTimeoutMs",
  "acceptsLostWrites",
  "onStoreDown",
  "storeTimeoutMs",
  "leaseMs",
  "maxRunMs",
  "maxAttempts",
  "maxTransactionMs",
  "completionRetryMs",
  "signal",
] as const satisfies readonly (keyof RunOptions)[];

/** The options of `run`, less those that a joined call has no say in: the transaction is the caller's. */
export type JoinedOptions<R = unknown> = Omit<RunOptions<R>, (typeof NOT_SAID)[number]>;

const NAMES: ReadonlySet<string> = new Set(
  [...RUN_NAMES].filter((name) => !NOT_SAID.includes(name as never)),
);

/** Claim, rows and completion commit together, whatever the instance promises otherwise. */
const IN_A_TRANSACTION = {
  guarantee: "exactly-once",
  onLapsed: "rerun",
  onStoreDown: "reject",
} as const satisfies Policy;

/**
 * `run` in one transaction of the caller's. Calls that are made at the same time take turns. `Held`: what the store needs of a
 * transaction; `Given`: the one that was handed over, which the work gets back.
 */
export interface Within<Held = unknown, Scoped extends boolean = boolean, Given = Held> {
  /**
   * Runs `fn` unless the key has a result already, and answers with the result. The claim, what `fn` writes through the
   * transaction, and the completion are there when the caller commits, and never if it does not.
   *
   * If it rejects, the transaction is as it was before the call and can go on, save after `TRANSACTION_ABORTED`. A throw that
   * `keep` keeps is on record, and its rows are not; it rejects all the same, so commit if the record is to stay.
   *
   * @throws OncekeyError with the code of the refusal, `IN_FLIGHT` at once where `run` would wait for a running attempt;
   * `RETRY_TRANSACTION`: repeat the transaction from its start; `TRANSACTION_ABORTED`: the database has ended it.
   */
  run<R>(
    options: JoinedOptions<R> & ScopeSaid<Scoped> & Compared,
    fn: (work: Work<Given, "exactly-once", Held>) => R | Promise<R>,
  ): Promise<R>;
  /** `run`, and whether the result is this call's own. */
  runWithOutcome<R>(
    options: JoinedOptions<R> & ScopeSaid<Scoped> & Compared,
    fn: (work: Work<Given, "exactly-once", Held>) => R | Promise<R>,
  ): Promise<RunOutcome<R>>;
  /**
   * Several keys at once, all of them or none: they are claimed first, in an order that all transactions have in common, so
   * that two of them never wait for each other; then `fn` runs for those that have no result yet, one after the other.
   *
   * @throws OncekeyError as `run` does; and `NOT_COMMITTED` if one of the works returned what `keep` does not keep.
   */
  runAll<R>(
    calls: readonly (JoinedOptions<R> & ScopeSaid<Scoped> & Compared)[],
    fn: (work: Work<Given, "exactly-once", Held>, position: number) => R | Promise<R>,
  ): Promise<readonly RunOutcome<R>[]>;
  /** Says that the caller has committed: the events that were kept back until now are emitted. Without it they never are. */
  committed(): void;
}

type Fn = (work: Work, position: number) => unknown;

interface Handle {
  readonly engine: Engine;
  readonly context: Identifying;
  /** Runs calls in turn. */
  readonly perform: (calls: readonly Call<Settled<unknown>>[]) => Promise<Joined<Settled<unknown>>>;
  readonly later: EventListener;
}

/** @throws OncekeyError `GUARANTEE_UNSUPPORTED` if the store's records do not lie where the transaction is. */
export function createWithin(engine: Engine, context: Identifying, transaction: unknown): Within {
  const { store } = engine;
  if (store.join === undefined) {
    throw new OncekeyError(
      "GUARANTEE_UNSUPPORTED",
      `The store ${store.name} keeps its records where no transaction of yours can reach them, so it cannot join one.`,
    );
  }
  // The types of the instance say what a transaction is; the engine hands on what it was given.
  const joined = store.join(transaction as never);
  const keptBack: IdempotencyEvent[] = [];
  const later = (event: IdempotencyEvent): void => {
    if (keptBack.length < MAX_KEPT_BACK_EVENTS) keptBack.push(event);
  };
  const line = createLine();
  const handle: Handle = {
    engine,
    context: { ...context, policyFor: (options) => context.policyFor(IN_A_TRANSACTION, options) },
    perform: (calls) => line.inTurn(() => performJoined({ engine, transaction: joined, later }, calls)),
    later,
  };
  const one = async (options: unknown, fn: unknown) => {
    const [outcome] = await runAll(handle, [options as RunOptions], fn as Fn);
    return outcome as RunOutcome<never>;
  };
  return {
    run: async (options, fn) => (await one(options, fn)).result,
    runWithOutcome: (options, fn) => one(options, fn),
    runAll: async (calls, fn) => {
      checkCount(calls);
      return (await runAll(handle, calls as readonly RunOptions[], fn as Fn)) as RunOutcome<never>[];
    },
    committed() {
      for (const event of keptBack.splice(0)) engine.emit(event);
    },
  };
}

function checkCount(calls: unknown): void {
  if (Array.isArray(calls) && calls.length <= MAX_JOINED_KEYS) return;
  throw configurationError("Call", [`calls must be a list of at most ${MAX_JOINED_KEYS}`]);
}

async function runAll(
  handle: Handle,
  options: readonly RunOptions[],
  fn: Fn,
): Promise<readonly RunOutcome<unknown>[]> {
  const { context } = handle;
  const calls = options.map((one, position) => callOf(context, one, withPosition(fn, position), NAMES));
  if (calls.length === 0) return [];
  const joined = await performReported(handle, calls);
  if (joined.kind === "kept") {
    return Promise.all(
      joined.performed.map((performed, position) => outcomeOf(options[position] ?? {}, performed)),
    );
  }
  const outcome = await outcomeOf(options[joined.position] ?? {}, joined.performed);
  if (calls.length === 1) return [outcome];
  throw new OncekeyError("NOT_COMMITTED", "One of the works returned what is not kept, so none of them is.", {
    retryAfterMs: 1_000,
  });
}

/** What is no function is left for the checks of the call to find. */
function withPosition(fn: Fn, position: number): (work: Work) => unknown {
  return typeof fn === "function" ? (work) => fn(work, position) : fn;
}

/** What is final by itself is told at once, what the caller has yet to commit later. */
async function performReported(
  { engine, perform, later }: Handle,
  calls: readonly Call<Settled<unknown>>[],
): Promise<Joined<Settled<unknown>>> {
  const { clock, emit } = engine;
  const startedMs = clock.monotonicMs();
  const finish = (to: EventListener, of: readonly Call<unknown>[], end: Parameters<typeof finishedAs>[0]) => {
    const tookMs = clock.monotonicMs() - startedMs;
    for (const { operation, identity } of of) {
      to({ type: "finished", operation, key: identity.key, outcome: finishedAs(end), tookMs, waitedMs: 0 });
    }
  };
  try {
    const joined = await perform(calls);
    if (joined.kind === "failed") finish(emit, calls, joined.performed);
    else {
      for (const [position, one] of joined.performed.entries())
        finish(later, calls.slice(position, position + 1), one);
    }
    return joined;
  } catch (error) {
    for (const { operation, identity } of calls) {
      if (!isOncekeyError(error)) break;
      emit({ type: "rejected", operation, key: identity.key, code: error.code, cause: error.cause });
    }
    finish(emit, calls, { kind: "refused", error, waitedMs: 0 });
    throw error;
  }
}
