/**
 * @module
 * A store that fails as planned, around one that does not.
 *
 * Invariant: whatever is not planned reaches the store behind it and comes back untouched, so the records are
 * real and show afterwards what has landed.
 */
import { type Clock, systemClock } from "../core/clock.js";
import type { CommitOutcome, Store, TransactionSession } from "../core/store.js";
import type { StoreMethod } from "../core/store-checks.js";
import { applyFault, type Fault } from "./faults.js";
import { type Interception, interceptedStore } from "./intercepted-store.js";

/** A call of the store, or `commit` of a transaction that it began. */
export type FaultyCall = StoreMethod | "commit";

/**
 * Which of the calls go wrong: all of them, those at a place of the list (`undefined` there, or a list that has
 * ended, is no fault), or those for which a function says so.
 *
 * The function gets the request and the number of the call, counted from 1 for each kind of call.
 */
export type FaultRule =
  | Fault
  | readonly (Fault | undefined)[]
  | ((request: unknown, call: number) => Fault | undefined);

export type FaultPlan = { readonly [Call in FaultyCall]?: FaultRule | undefined } & {
  /** `"deaf"`: wake-ups are lost. */
  readonly watch?: "deaf" | undefined;
};

export interface FaultyStore<Tx = unknown, Held = never> extends Store<Tx, Held> {
  /** Replaces the plan. Lists start from their beginning; calls that hang go on hanging. */
  plan(next: FaultPlan): void;
  /** No more faults. */
  heal(): void;
  /** How often a call was made, faults included. */
  count(call: FaultyCall): number;
  /** What each call of the kind asked for, in order. */
  requests(call: FaultyCall): readonly unknown[];
}

/**
 * Puts faults between a store and whoever uses it.
 *
 * @example
 * const store = faultyStore(memoryStore(), { complete: [{ kind: "reject" }, { kind: "reject" }] });
 * // the first two completions fail, the third lands
 */
export function faultyStore<Tx, Held = never>(
  store: Store<Tx, Held>,
  plan: FaultPlan = {},
  { clock = systemClock }: { readonly clock?: Clock | undefined } = {},
): FaultyStore<Tx, Held> {
  const requests = new Map<FaultyCall, unknown[]>();
  let current = plan;
  /** Calls made before the present plan, from which its lists and functions count. */
  let before = new Map<FaultyCall, number>();

  const madeSo = (call: FaultyCall): unknown[] => {
    const made = requests.get(call) ?? [];
    requests.set(call, made);
    return made;
  };

  const through: Through = (call, request, next) => {
    const number = madeSo(call).push(request) - (before.get(call) ?? 0);
    const fault = faultOf(current[call], request, number);
    return fault === undefined ? next() : applyFault(fault, clock, next);
  };

  function plannedTo(next: FaultPlan): void {
    current = next;
    before = new Map([...requests].map(([call, made]) => [call, made.length]));
  }

  const behind = interceptedStore(store, through);
  const { watch, begin } = behind;
  return {
    ...behind,
    ...(watch && {
      watch: (key, wake) =>
        watch(key, () => {
          if (current.watch !== "deaf") wake();
        }),
    }),
    ...(begin && { begin: (request) => withFaults(begin(request), through) }),
    plan: plannedTo,
    heal: () => plannedTo({}),
    count: (call) => madeSo(call).length,
    requests: (call) => madeSo(call),
  };
}

function faultOf(rule: FaultRule | undefined, request: unknown, call: number): Fault | undefined {
  if (typeof rule === "function") return rule(request, call);
  return isList(rule) ? rule[call - 1] : rule;
}

function isList(rule: FaultRule | undefined): rule is readonly (Fault | undefined)[] {
  return Array.isArray(rule);
}

type Through = (call: FaultyCall, ...asked: Parameters<Interception>) => Promise<unknown>;

/** A session whose commit may go wrong. What `requests("commit")` shows are the outcomes to commit. */
function withFaults<Tx>(session: TransactionSession<Tx>, through: Through): TransactionSession<Tx> {
  return {
    handle: session.handle,
    used: () => session.used(),
    undoneBy: () => session.undoneBy?.(),
    commit: (outcome, what) =>
      through("commit", outcome, () => session.commit(outcome, what)) as Promise<CommitOutcome>,
    rollback: () => session.rollback(),
  };
}
