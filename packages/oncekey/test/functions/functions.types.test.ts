/**
 * What compiles and what does not: `idempotentFunction` and `currentWork`. Nothing here is called.
 */
import {
  createIdempotency,
  GLOBAL_SCOPE,
  type Idempotency,
  type StepWork,
  type Store,
  type Work,
} from "oncekey";
import { idempotentFunction } from "oncekey/functions";
import { memoryStore } from "oncekey/stores/memory";
import { describe, expectTypeOf, it } from "vitest";

interface Order {
  readonly id: string;
  readonly tenant: string;
}
interface Connection {
  query(sql: string): Promise<void>;
}

declare const database: Store<Connection>;
declare function create(order: Order, note?: string): Promise<URL>;

/** Never called: only compiled. */
const compiled = (_: () => unknown): void => undefined;

const plain = createIdempotency({ store: memoryStore() });
const scoped = createIdempotency({ store: memoryStore(), scope: "global" });
const exact = () => createIdempotency({ store: database, guarantee: "exactly-once" });

describe("idempotentFunction", () => {
  it("keeps parameters, this and the awaited result", () => {
    compiled(() => {
      const options = { operation: "create", scope: "a", key: "k" } as const;
      expectTypeOf(idempotentFunction(plain, options, create)).branded.toEqualTypeOf<
        (order: Order, note?: string) => Promise<URL>
      >();
      const sum = idempotentFunction(plain, options, (...terms: number[]) => terms.length);
      expectTypeOf(sum).branded.toEqualTypeOf<(...terms: number[]) => Promise<number>>();
      const method = idempotentFunction(plain, options, function (this: Order, amount: number) {
        return this.id + amount;
      });
      expectTypeOf(method).branded.toEqualTypeOf<(this: Order, amount: number) => Promise<string>>();
      // @ts-expect-error It has to be called on an order.
      return method(1);
    });
  });

  it("gives the functions among its options the function's parameters", () => {
    compiled(() => [
      idempotentFunction(
        plain,
        {
          operation: "create",
          scope: (order) => order.tenant,
          key: (order, note) => [order.id, note ?? "none"],
          input: (order) => order,
        },
        create,
      ),
      idempotentFunction(
        plain,
        // @ts-expect-error An order has no such member.
        { operation: "create", scope: "a", key: (order) => order.number },
        create,
      ),
      // @ts-expect-error The key is made of texts, numbers, dates.
      idempotentFunction(plain, { operation: "create", scope: "a", key: (order) => order }, create),
      // @ts-expect-error These take a number, and the function an order.
      idempotentFunction(plain, { operation: "create", scope: "a", key: (id: number) => id }, create),
    ]);
  });

  it("requires a scope unless the instance has one, and refuses misspelt options", () => {
    compiled(() => [
      // @ts-expect-error Whose key it is has to be said.
      idempotentFunction(plain, { operation: "create", key: "k" }, create),
      idempotentFunction(plain, { operation: "create", key: "k", scope: GLOBAL_SCOPE }, create),
      idempotentFunction(scoped, { operation: "create", key: (order) => order.id }, create),
      // @ts-expect-error leaseMs is meant.
      idempotentFunction(scoped, { operation: "create", key: "k", leasMs: 1 }, create),
      // @ts-expect-error An operation has a name, and a key.
      idempotentFunction(scoped, { operation: "create" }, create),
    ]);
  });

  it("types the codec by the result, and the guarantee by the store", () => {
    const codec = { encode: (url: URL) => url.href, decode: (text: unknown) => new URL(String(text)) };
    const options = { operation: "create", scope: "a", key: "k" } as const;
    compiled(() => [
      idempotentFunction(plain, { ...options, result: codec }, create),
      // @ts-expect-error The codec is for addresses.
      idempotentFunction(plain, { ...options, result: codec }, () => "text"),
      // @ts-expect-error The memory store has no transactions.
      idempotentFunction(plain, { ...options, guarantee: "exactly-once" }, create),
      idempotentFunction(exact(), { ...options, guarantee: "exactly-once" }, create),
    ]);
  });

  it("takes any instance where its type is not known", () => {
    compiled(
      () => (instance: Idempotency) =>
        idempotentFunction(instance, { operation: "create", scope: "a", key: "k" }, create),
    );
  });
});

describe("currentWork", () => {
  it("has the transaction that the instance gives, or the one that is said", () => {
    compiled(() => {
      expectTypeOf(exact().currentWork().transaction).toEqualTypeOf<Connection>();
      expectTypeOf(plain.currentWork().transaction).toEqualTypeOf<undefined>();
      const late = createIdempotency({ store: database });
      expectTypeOf(late.currentWork("exactly-once").transaction).toEqualTypeOf<Connection>();
      // @ts-expect-error The memory store gives no exactly-once.
      return plain.currentWork("exactly-once");
    });
  });
});

describe("step", () => {
  it("infers its result, and has no transaction, whatever its work has", () => {
    compiled(async () => {
      const { step } = exact().currentWork();
      expectTypeOf(step("pay", async () => 1)).resolves.toEqualTypeOf<number>();
      expectTypeOf(step("pay", () => undefined)).resolves.toEqualTypeOf<undefined>();
      await step("pay", (work) => {
        expectTypeOf(work.transaction).toEqualTypeOf<undefined>();
        expectTypeOf(work).toEqualTypeOf<StepWork>();
        return work.step("inner", ({ attempt }) => attempt);
      });
      const anyWork = (work: Work) => work.downstreamKey("x");
      const some: Work = exact().currentWork();
      return [step("pay", anyWork), some.step("pay", anyWork)];
    });
  });
});
