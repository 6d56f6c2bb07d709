/**
 * @module
 * What compiles and what does not: the signatures of `createIdempotency`, `run` and `workOf`.
 *
 * Each `@ts-expect-error` is checked by the compiler. Nothing here is called; what a call would do is left to the other tests.
 */
import { describe, expectTypeOf, it } from "vitest";
import { memoryStore } from "../stores/memory/index.js";
import type { RunOutcome } from "./function-results.js";
import { createIdempotency, type Idempotency } from "./idempotency.js";
import { GLOBAL_SCOPE } from "./key.js";
import type { Policy } from "./policy.js";
import type { Guarantee } from "./record.js";
import type { Store } from "./store.js";
import type { Work } from "./work.js";

interface Connection {
  query(sql: string): Promise<void>;
}
interface Receipt {
  readonly id: number;
}

/** What a store needs of a transaction, and a client's object that has more. */
interface Queryable {
  query(sql: string): Promise<readonly unknown[]>;
}
interface Pool extends Queryable {
  connect(): void;
}

declare const database: Store<Connection>;
declare const reachable: Store<Connection, Queryable>;
declare const receipt: Receipt;

const call = { operation: "charge", key: "k", scope: "tenant", input: 1 } as const;

/** Never called: only compiled. */
const compiled = (_: () => unknown): void => undefined;

const plain = createIdempotency({ store: memoryStore() });
const scoped = createIdempotency({ store: memoryStore(), scope: "global" });
const said = createIdempotency({ store: memoryStore(), scope: GLOBAL_SCOPE });
const found = createIdempotency({ store: memoryStore(), scope: () => "tenant" });
const transactional = (): Idempotency<Connection, "at-least-once", false> =>
  createIdempotency({ store: database });

describe("run", () => {
  it("infers the result: values, promises, literals, interfaces, nothing", () => {
    expectTypeOf(() => plain.run(call, () => receipt)).returns.resolves.toEqualTypeOf<Receipt>();
    expectTypeOf(() => plain.run(call, async () => receipt)).returns.resolves.toEqualTypeOf<Receipt>();
    expectTypeOf(() => plain.run(call, () => {})).returns.resolves.toEqualTypeOf<void>();
    expectTypeOf(() => plain.run(call, async () => undefined)).returns.resolves.toEqualTypeOf<undefined>();
    expectTypeOf(() => plain.run(call, () => "done" as const)).returns.resolves.toEqualTypeOf<"done">();
    expectTypeOf(() => plain.runWithOutcome(call, () => receipt)).returns.resolves.toEqualTypeOf<
      RunOutcome<Receipt>
    >();
  });

  it("requires a scope, unless the instance has one", () => {
    const { scope: _, ...unscoped } = call;
    compiled(() => [
      // @ts-expect-error Whose key it is has to be said.
      plain.run(unscoped, () => 1),
      scoped.run(unscoped, () => 1),
      said.run(unscoped, () => 1),
      found.run(unscoped, () => 1),
      scoped.run(call, () => 1),
      plain.run({ ...unscoped, scope: GLOBAL_SCOPE }, () => 1),
      plain.run({ ...unscoped, scope: ["tenant", 7, new Date()] }, () => 1),
      // What was not found is refused at run time, so a scope may be looked up in place.
      plain.run({ ...unscoped, scope: undefined as string | undefined }, () => 1),
      // @ts-expect-error A record is no scope: it would print as every other.
      plain.run({ ...unscoped, scope: { id: 1 } }, () => 1),
    ]);
  });

  it("requires an input, or that its comparison is given up in plain sight", () => {
    const { input: _, ...blind } = call;
    compiled(() => [
      // @ts-expect-error What repeats are compared by has to be said.
      plain.run(blind, () => 1),
      plain.run({ ...blind, fingerprint: "off" }, () => 1),
      plain.run({ ...blind, input: undefined }, () => 1),
      // @ts-expect-error There is no other word for it.
      plain.run({ ...blind, fingerprint: "on" }, () => 1),
    ]);
  });

  it("refuses misspelt options and wrong types, also beside right ones", () => {
    compiled(() => [
      // @ts-expect-error leaseMs is meant.
      plain.run({ ...call, leasMs: 5 }, () => 1),
      // @ts-expect-error Durations are numbers of milliseconds.
      plain.run({ ...call, leaseMs: "30s" }, () => 1),
      // @ts-expect-error There are three guarantees.
      plain.run({ ...call, guarantee: "exactly-twice" }, () => 1),
      // @ts-expect-error An operation has a name.
      plain.run({ scope: "a", key: "k", input: 1 }, () => 1),
      // @ts-expect-error waitMs belongs into onInFlight.
      plain.run({ ...call, waitMs: 1 }, () => 1),
      plain.run(
        { ...call, onInFlight: { waitMs: 1, onReleased: "refuse" }, maxAttempts: undefined },
        () => 1,
      ),
    ]);
  });

  it("takes a preset, which is plain policy", () => {
    const preset = { retentionMs: 1_000, onCompleted: "reject" } as const satisfies Policy;
    compiled(() => [
      plain.run({ ...preset, ...call }, () => 1),
      createIdempotency({ store: database, ...preset }),
    ]);
  });

  it("types a codec by the result", () => {
    const codec = { encode: (value: Receipt) => value.id, decode: (id: unknown) => ({ id: Number(id) }) };
    compiled(() => [
      plain.run({ ...call, result: codec }, () => receipt),
      // @ts-expect-error The codec is for receipts.
      plain.run({ ...call, result: codec }, () => "text"),
    ]);
  });
});

describe("exactly-once", () => {
  it("does not compile for a store without transactions", () => {
    compiled(() => [
      // @ts-expect-error The memory store has no transactions.
      createIdempotency({ store: memoryStore(), guarantee: "exactly-once" }),
      // @ts-expect-error Nor has a call of its instance.
      plain.run({ ...call, guarantee: "exactly-once" }, () => 1),
    ]);
  });

  it("gives the work its transaction, and only then", () => {
    const exact = () => createIdempotency({ store: database, guarantee: "exactly-once" });
    compiled(() => [
      exact().run(call, ({ transaction }) => {
        expectTypeOf(transaction).toEqualTypeOf<Connection>();
      }),
      exact().run({ ...call, guarantee: "at-least-once" }, ({ transaction }) => {
        expectTypeOf(transaction).toEqualTypeOf<undefined>();
      }),
      transactional().run({ ...call, guarantee: "exactly-once" }, ({ transaction }) => transaction.query("")),
      transactional().run(call, ({ transaction }) => {
        expectTypeOf(transaction).toEqualTypeOf<undefined>();
      }),
      transactional().run({ ...call, guarantee: "at-most-once" as Guarantee }, ({ transaction }) => {
        expectTypeOf(transaction).toEqualTypeOf<Connection | undefined>();
      }),
    ]);
  });

  it("is known to workOf by the instance, or by what is said", () => {
    const request = {};
    compiled(() => {
      const exact = createIdempotency({ store: database, guarantee: "exactly-once" });
      expectTypeOf(exact.workOf(request).transaction).toEqualTypeOf<Connection>();
      expectTypeOf(transactional().workOf(request).transaction).toEqualTypeOf<undefined>();
      expectTypeOf(transactional().workOf(request, "exactly-once").transaction).toEqualTypeOf<Connection>();
    });
  });
});

describe("a transaction of the caller's", () => {
  const joinable = () => createIdempotency({ store: reachable });
  const pool: Pool = { connect: () => undefined, query: async () => [] };

  it("is joined and guarded by as little of it as the store needs", () => {
    compiled(() => {
      const within = joinable().within(pool);
      expectTypeOf(within.run(call, () => receipt)).resolves.toEqualTypeOf<Receipt>();
      return [
        within.run(call, ({ transaction }) => {
          expectTypeOf(transaction).toEqualTypeOf<Pool>();
        }),
        within.runAll([call, call], (_, position) => position),
        joinable().run(call, ({ guard }) => guard(pool)),
        joinable().workOf({}).guard(pool),
        // @ts-expect-error A number is no transaction.
        joinable().within(5),
        // @ts-expect-error Its guarantee goes without saying.
        within.run({ ...call, guarantee: "at-least-once" }, () => 1),
        // @ts-expect-error What repeats are compared by has to be said here too.
        within.run({ operation: "charge", key: "k", scope: "tenant" }, () => 1),
      ];
    });
  });

  it("does not compile for a store that cannot reach it, with transactions of its own or without", () => {
    compiled(() => [
      // @ts-expect-error Nothing of the caller's can be joined there.
      createIdempotency({ store: database }).within(pool),
      // @ts-expect-error Nor is there anything in the memory store.
      plain.within(pool),
      // @ts-expect-error A claim cannot be pinned from outside either.
      plain.run(call, ({ guard }) => guard(pool)),
    ]);
  });

  it("leaves an instance what every other is", () => {
    const anyInstance = (instance: Idempotency): boolean => instance.scoped;
    const handler = (work: Work): string => work.downstreamKey("x");
    compiled(() => [anyInstance(joinable()), joinable().run(call, handler)]);
  });
});

describe("an instance", () => {
  it("fits where any instance is taken, and generic helpers keep its transaction", () => {
    const anyInstance = (instance: Idempotency): boolean => instance.scoped;
    const withStore = <Tx>(instance: Idempotency<Tx>) => instance;
    compiled(() => [anyInstance(plain), anyInstance(scoped), anyInstance(transactional())]);
    expectTypeOf(() => withStore(transactional())).returns.toEqualTypeOf<Idempotency<Connection>>();
    expectTypeOf(scoped.scoped).toEqualTypeOf<true>();
    expectTypeOf(plain.scoped).toEqualTypeOf<false>();
  });

  it("runs work that was written for any store", () => {
    const handler = (work: Work): string => work.downstreamKey("x");
    compiled(() => [plain.run(call, handler), transactional().run(call, handler)]);
  });

  it("refuses misspelt options", () => {
    compiled(() => [
      // @ts-expect-error namespace is meant.
      createIdempotency({ store: database, nameSpace: "x" }),
      // @ts-expect-error The scope of an instance has no carrier to look at.
      createIdempotency({ store: database, scope: (request: Request) => request.url }),
    ]);
  });
});
