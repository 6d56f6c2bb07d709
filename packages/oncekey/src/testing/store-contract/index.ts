/**
 * @module
 * The contract of stores: every promise of the port as data, tied to no test runner.
 *
 * Invariant: a case that a store is excused from is named with its reason, and failing is part of the excuse:
 * a waiver of a promise that is kept is itself a failure, so waivers say exactly what a store cannot do.
 */
import type { RecordKey } from "../../core/record.js";
import type { Store } from "../../core/store.js";
import { missingOfStore } from "../../core/store-checks.js";
import { checkWaivers, registerCase, type TestRunner, type Waivers } from "../test-runner.js";
import { claiming } from "./claiming.js";
import { completing } from "./completing.js";
import {
  type ContractCaller,
  PAST_SHORT_MS,
  type StoreCase,
  type StoreContext,
  type StoreSubject,
} from "./context.js";
import { ending } from "./ending.js";
import { joining } from "./joining.js";
import { leases } from "./leases.js";
import { looking } from "./looking.js";
import { pinning } from "./pinning.js";
import { releasing } from "./releasing.js";
import { resolving } from "./resolving.js";
import { retaining } from "./retaining.js";
import { transactions } from "./transactions.js";
import { unknown } from "./unknown.js";
import { watching } from "./watching.js";

export type { ContractCaller, ContractRows, StoreCase, StoreContext, StoreSubject } from "./context.js";

/** All promises of the port, each with what goes wrong for a user of a store that breaks it. */
export const storeContract: readonly StoreCase[] = [
  ...claiming,
  ...leases,
  ...completing,
  ...releasing,
  ...unknown,
  ...resolving,
  ...retaining,
  ...looking,
  ...watching,
  ...transactions,
  ...joining,
  ...pinning,
  ...ending,
];

export interface StoreContractSetup<Tx = unknown, Held = never> {
  /** Opens the store on fresh, empty records; called once for each case. */
  open(): StoreSubject<Tx, Held> | Promise<StoreSubject<Tx, Held>>;
  /** Cases, by name or by group, that the store does not keep, with the reason why not. */
  readonly waivers?: Waivers | undefined;
  /**
   * How often each race is run.
   *
   * @defaultValue 100
   */
  readonly raceRounds?: number | undefined;
}

/**
 * Runs the contract of stores with a test runner.
 *
 * @example bindStoreContract({ describe, it }, { open: () => ({ store: myStore(), sleep }) });
 */
export function bindStoreContract<Tx, Held = never>(
  runner: TestRunner,
  setup: StoreContractSetup<Tx, Held>,
): void {
  const { waivers = {} } = setup;
  checkWaivers(waivers, new Set(storeContract.flatMap((one) => [one.name, one.group])));
  for (const name of new Set(storeContract.map((one) => one.group))) {
    runner.describe(name, () => {
      for (const one of storeContract.filter((other) => other.group === name)) {
        const waiver = waivers[one.name] ?? waivers[one.group];
        registerCase(runner, one.name, waiver, () => runStoreCase(one, setup));
      }
    });
  }
}

/** Runs one case on a store opened for it; rejects if the promise is broken. */
export async function runStoreCase<Tx, Held = never>(
  one: StoreCase,
  setup: StoreContractSetup<Tx, Held>,
): Promise<void> {
  const subject = await setup.open();
  const opened: Opened = { stores: [], callers: [] };
  try {
    opened.stores.push(checked(subject.store, "open"));
    await one.run(contextOf(subject, opened, setup.raceRounds ?? 100));
  } catch (error) {
    // What cleaning up after a failure meets is a consequence; it must not be shown in the place of its cause.
    await cleanUp(subject, opened).catch(() => undefined);
    throw error;
  }
  await cleanUp(subject, opened);
}

/** What is to be closed at the end of a case. */
interface Opened {
  readonly stores: Store[];
  readonly callers: ContractCaller<never>[];
}

async function cleanUp<Tx, Held>(subject: StoreSubject<Tx, Held>, opened: Opened): Promise<void> {
  await Promise.allSettled(opened.callers.map(async (caller) => caller.rollback()));
  await Promise.allSettled(opened.stores.map(async (store) => store.close()));
  await subject.dispose?.();
}

/** A store that is not finished yet fails by the names of what it lacks, not by the first of them that a case uses. */
function checked(store: Store, from: "open" | "another"): Store {
  const missing = missingOfStore(store);
  if (missing.length === 0) return store;
  throw new Error(`The store that ${from} gave is not finished: it has no ${missing.join(", ")}`);
}

function contextOf<Tx, Held>(
  subject: StoreSubject<Tx, Held>,
  { stores, callers }: Opened,
  raceRounds: number,
): StoreContext {
  const { store } = subject;
  return {
    store,
    async connections(count) {
      while (stores.length < count && subject.another !== undefined) {
        stores.push(checked(await subject.another(), "another"));
      }
      return Array.from({ length: count }, (_, index) => stores[index] ?? store);
    },
    sleep: (ms) => subject.sleep(ms),
    lapse: () => subject.sleep(PAST_SHORT_MS),
    async damage(key: RecordKey) {
      if (subject.damage === undefined) throw new Error("The binding cannot damage a record");
      await subject.damage(key);
    },
    rows: subject.rows as StoreContext["rows"],
    async beginCaller() {
      if (subject.beginCaller === undefined)
        throw new Error("The binding gives no transactions of the application's");
      const caller = await subject.beginCaller();
      callers.push(caller as ContractCaller<never>);
      return caller as ContractCaller<never>;
    },
    raceRounds,
  };
}
