/**
 * @module
 * What protected work gets to see of its own claim, in a function or in a handler of any framework.
 *
 * Invariant: a work context speaks of one attempt, and is found on its carrier only while that attempt is the carrier's.
 */
import { OncekeyError } from "./errors.js";
import { downstreamKeyOf } from "./key.js";
import type { Lease } from "./lease.js";
import type { ResolvedPolicy } from "./policy.js";
import type { Guarantee, RecordKey } from "./record.js";
import type { ClaimRequest } from "./store.js";

/** A store without transactions (`Store<never>`) cannot give exactly-once. */
export type GuaranteeOf<Tx> = [Tx] extends [never] ? Exclude<Guarantee, "exactly-once"> : Guarantee;

/**
 * The transaction is there under exactly-once, and only there. Each guarantee is looked at by itself, so that work written
 * for any of them takes what a narrower one gives.
 */
export type TransactionOf<Tx, G extends Guarantee> = G extends "exactly-once" ? Tx : undefined;

/** One attempt, as its work sees it. `Held`: what the store needs of a transaction to guard it; `never` if it can guard none. */
export interface Work<Tx = unknown, G extends Guarantee = Guarantee, Held = never> {
  /** Fires when the claim is lost: stop before the next effect. Late while the event loop is blocked; see `assertHeld`. */
  readonly signal: AbortSignal;
  /** What the policy promises of it. */
  readonly guarantee: Guarantee;
  /** 1 for the first start; more means that the end of an earlier start is unknown or was a failure. */
  readonly attempt: number;
  /** `false`: the store did not answer and the policy said to run all the same. */
  readonly protected: boolean;
  /** Under exactly-once: what is written through it commits with the completion, or not at all. */
  readonly transaction: TransactionOf<Tx, G>;
  /**
   * For the moment before an effect: synchronous, asks nobody.
   * @throws OncekeyError `LEASE_LOST` or `RUN_TOO_LONG`.
   */
  assertHeld(): void;
  /**
   * Renews the lease first, then asserts: the whole lease lies ahead when it resolves.
   * @throws OncekeyError `LEASE_LOST`, `RUN_TOO_LONG` or `STORE_UNAVAILABLE`.
   */
  confirm(): Promise<void>;
  /**
   * Pins this claim in a transaction of your own, as its first statement: whoever has taken the claim over by then makes it
   * throw, and nobody can take it over until that transaction ends. It fences what you write there; the completion is still a
   * commit of its own, so it is not exactly-once. The claim goes on being renewed.
   *
   * Does not compile for a store whose records no transaction of yours can reach.
   *
   * @throws OncekeyError `LEASE_LOST` or `RUN_TOO_LONG`: roll back. `RETRY_TRANSACTION`, `TRANSACTION_ABORTED`.
   */
  guard(transaction: Held): Promise<void>;
  /**
   * An idempotency key for the service `name`. It depends on the operation's identity alone: the same over all attempts,
   * processes and deploys, so that the other side recognises a second try. 43 characters of `A-Z a-z 0-9 - _`.
   */
  downstreamKey(name: string): string;
  /**
   * Does a part of the work and keeps its result, so that this work, started again after a crash or a failure, gets that result
   * instead of doing the part again. What `fn` throws is thrown here, and nothing is kept: then the step may be tried again.
   *
   * A step is promised what its work is, save that under exactly-once it is at-least-once: it is for what is done outside the
   * transaction, before its first statement. Its claim is its own, so an attempt that has lost the operation's claim can still
   * finish the step it is in; its successor waits for that and takes the result.
   *
   * @param name the same in every attempt and deploy, and used once in each attempt. It is shown in events and lists.
   * @param fn gets the step's own context: its claim, its keys for other services, steps of its own.
   * @throws OncekeyError `STEP_IN_FLIGHT`: an earlier attempt may still be in it. `STEP_REFUSED`: it was begun before and its
   * result cannot be had; `cause` says why. `LEASE_LOST` or `RUN_TOO_LONG`, and `fn` was not called. `STORE_UNAVAILABLE`.
   * `CONFIGURATION_INVALID` for a name that was used already.
   */
  step<R>(name: string, fn: (work: StepWork<Held>) => R | Promise<R>): Promise<R>;
  /**
   * Says that nothing has happened: if this attempt then fails, its key is free again, even under at-most-once. For handlers,
   * whose throws become answers on the way; a function given to `run` can also `throw notPerformed(reason)`.
   */
  notPerformed(): void;
}

/** A step, as its function sees it: an attempt of its own, outside any transaction. */
export type StepWork<Held = never> = Work<never, Exclude<Guarantee, "exactly-once">, Held>;

/** An attempt whose work is about to start, as far as its context shows it. */
export interface Attempted {
  readonly call: { readonly policy: ResolvedPolicy; readonly carrier: unknown };
  readonly claim: ClaimRequest;
  readonly attempt: number;
  readonly protected: boolean;
  readonly lease: Lease;
  /** When the claim was sent, on the monotonic clock; `undefined`: a transaction of the caller's holds it. */
  readonly claimedMs: number | undefined;
  /** Set when the work says so. */
  nothingHappened: boolean;
  /** The work has ended. What it left behind may go on, and begins no step. */
  readonly over: boolean;
}

/**
 * An attempt that has begun, as its family gets it. What its work sees of it is made when somebody looks: most handlers of a
 * request never do, and making it takes longer than a claim (measured).
 */
export interface Begun {
  readonly protected: boolean;
  /** The same each time. */
  work(): Work;
}

/** Runs a step. `names`: those that this attempt has used. */
export type RunStep = <R>(
  of: Attempted,
  names: Set<string>,
  name: string,
  fn: (work: StepWork) => R | Promise<R>,
) => Promise<R>;

export function beginWork(runStep: RunStep, attempted: Attempted, transaction: unknown): Begun {
  let work: Work | undefined;
  return {
    protected: attempted.protected,
    work() {
      work ??= createWork(runStep, attempted, transaction);
      return work;
    },
  };
}

export function createWork<Tx>(
  runStep: RunStep,
  attempted: Attempted,
  transaction: Tx | undefined,
): Work<Tx> {
  const { lease, attempt } = attempted;
  let names: Set<string> | undefined;
  return {
    get signal() {
      return lease.signal();
    },
    guarantee: attempted.call.policy.guarantee,
    attempt,
    protected: attempted.protected,
    transaction,
    assertHeld: lease.assertHeld,
    confirm: lease.confirm,
    guard: lease.guard,
    downstreamKey: (name) => downstreamKeyOf(attempted.claim.key, name),
    step(name, fn) {
      names ??= new Set();
      return runStep(attempted, names, name, fn);
    },
    notPerformed() {
      attempted.nothingHappened = true;
    },
  };
}

/** Registered, so that two copies of the package find each other's. */
const WORK = Symbol.for("oncekey.work");

/** What `workOf` finds its work by. */
interface Carrier {
  [WORK]?: Begun;
}

/** Makes the work of `begun` the one that `workOf(carrier)` finds. */
export function attachWork(carrier: object, begun: Begun): void {
  Object.defineProperty(carrier, WORK, { value: begun, configurable: true, enumerable: false });
}

/** Whether the work on `carrier` is that of `key`: what it gives to others depends on nothing else. */
export function isWorkOf(carrier: unknown, key: RecordKey): boolean {
  const begun = (carrier as Carrier | undefined)?.[WORK];
  return begun !== undefined && begun.work().downstreamKey("self") === downstreamKeyOf(key, "self");
}

/**
 * @param asked the guarantee that the handler counts on.
 * @throws OncekeyError `NOT_PROTECTED` if `carrier` is not being handled by protected work; `GUARANTEE_UNSUPPORTED` if that
 * work was promised less than `asked`.
 */
export function attachedWork(carrier: object, asked?: Guarantee): Work {
  const work = (carrier as Carrier | undefined)?.[WORK]?.work();
  const none = "There is no protected work here: is the idempotent middleware before this handler?";
  return promised(work, asked, none);
}

/** What was found, if it is there and was promised what is asked of it. */
export function promised(work: Work | undefined, asked: Guarantee | undefined, none: string): Work {
  if (work === undefined) throw new OncekeyError("NOT_PROTECTED", none);
  // Whoever asks for the least is served by every guarantee.
  if (asked !== undefined && asked !== "at-least-once" && asked !== work.guarantee) {
    throw new OncekeyError(
      "GUARANTEE_UNSUPPORTED",
      `This work counts on ${asked}, but its call or route is ${work.guarantee}. Set guarantee: "${asked}" in its options or in those of the instance.`,
    );
  }
  return work;
}
