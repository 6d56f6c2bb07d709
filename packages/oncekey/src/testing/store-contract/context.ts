/**
 * @module
 * What a case of the store contract is, and what it is given.
 *
 * Invariant: a case knows the port and nothing else: no test runner, no store, no kind of clock. Time passes
 * only by `sleep`, which a store with an injected clock answers at once.
 */
import type { RecordKey } from "../../core/record.js";
import type { Store } from "../../core/store.js";

/** Rows that exactly-once work writes, in whatever table the binding made for it. */
export interface ContractRows<Tx> {
  write(tx: Tx, id: string): Promise<unknown>;
  /** How many rows with that id are committed, as somebody else sees it. */
  count(id: string): Promise<number>;
}

/** A transaction that the application holds, on a connection of its own. */
export interface ContractCaller<Held> {
  readonly transaction: Held;
  /** Inserts a row with that id where `rows` counts them. */
  write(id: string): Promise<unknown>;
  commit(): Promise<unknown>;
  /** Safe to call after an end. */
  rollback(): Promise<unknown>;
}

/** A store on fresh, empty records, as a binding opens it for one case. */
export interface StoreSubject<Tx = unknown, Held = never> {
  readonly store: Store<Tx, Held>;
  /** Opens another connection to the same records. Leave it out where there can be only one. */
  another?(): Store<Tx, Held> | Promise<Store<Tx, Held>>;
  /** Lets time pass on the clock that judges leases: moves a manual clock, or really waits. */
  sleep(ms: number): Promise<void>;
  /** Makes the record unreadable. Leave it out where nothing can. */
  damage?(key: RecordKey): void | Promise<void>;
  /** Needed for stores with transactions. */
  readonly rows?: ContractRows<Tx>;
  /** Begins one, of the isolation that the database has by default. Needed for stores that can join one. */
  beginCaller?(): Promise<ContractCaller<Held>>;
  /** Closes what was opened and removes what is left of it. The store itself is closed by the contract. */
  dispose?(): void | Promise<void>;
}

/** What a case runs against. */
export interface StoreContext {
  readonly store: Store;
  /** As many handles as asked, on different connections where the store can have them. */
  connections(count: number): Promise<readonly Store[]>;
  sleep(ms: number): Promise<void>;
  /** Lets a lease of `SHORT_MS`, or a retention of that length, end. */
  lapse(): Promise<void>;
  damage(key: RecordKey): Promise<void>;
  readonly rows: ContractRows<unknown> | undefined;
  /** Begins a transaction of the application's; what a case leaves open is rolled back. */
  beginCaller(): Promise<ContractCaller<never>>;
  /** How often a race is run; the more, the likelier a rare interleaving. */
  readonly raceRounds: number;
}

/** One promise of the port. */
export interface StoreCase {
  /** Cases of one group can be waived together. */
  readonly group: string;
  readonly name: string;
  /** What goes wrong for a user of a store that breaks it. */
  readonly why: string;
  run(context: StoreContext): Promise<void>;
}

/** A lease or retention that a case lets end. Long enough that a slow machine does not end it by itself. */
export const SHORT_MS = 300;
/** Past the end of `SHORT_MS`, rounding and scheduling included. */
export const PAST_SHORT_MS = SHORT_MS + 80;

/** Puts the name of their group on cases. */
export function group(name: string, cases: readonly Omit<StoreCase, "group">[]): readonly StoreCase[] {
  return cases.map((one) => ({ ...one, group: name }));
}
