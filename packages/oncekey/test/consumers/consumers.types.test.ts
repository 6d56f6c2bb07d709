import { expectTypeOf, test } from "vitest";
import { type Deliver, handleOnce } from "../../src/consumers/index.js";
import { createIdempotency, type Store, type Work } from "../../src/index.js";
import { memoryStore } from "../../src/stores/memory/index.js";

interface Order {
  readonly id: string;
  readonly amount: number;
}

interface Transaction {
  query(text: string): Promise<void>;
}

const plain = createIdempotency({ store: memoryStore() });
/** Only its type is looked at. */
const transactional = createIdempotency({ store: memoryStore() as unknown as Store<Transaction> });
const options = { consumer: "billing", key: (order: Order) => order.id, input: "off" } as const;

test("messages and results keep their types", () => {
  const deliver = handleOnce(plain, options, async (order) => ({ paid: order.amount }));
  expectTypeOf(deliver).toEqualTypeOf<Deliver<Order, { paid: number }>>();
  expectTypeOf(handleOnce(plain, options, () => undefined)).toEqualTypeOf<Deliver<Order, undefined>>();
});

test("what the consumer compares by has to be said", () => {
  const key = (order: Order) => order.id;
  // @ts-expect-error: no input
  expectTypeOf(() => handleOnce(plain, { consumer: "billing", key }, () => undefined)).toBeFunction();
  // @ts-expect-error: a misspelt option
  expectTypeOf(() => handleOnce(plain, { ...options, leasMs: 30_000 }, () => undefined)).toBeFunction();
});

test("exactly-once gives the work a transaction, and needs a store that has them", () => {
  const inbox = { ...options, guarantee: "exactly-once" } as const;
  expectTypeOf(() =>
    handleOnce(transactional, inbox, (_, work) => {
      expectTypeOf(work.transaction).toEqualTypeOf<Transaction>();
    }),
  ).toBeFunction();
  expectTypeOf(() =>
    handleOnce(transactional, options, (_, work) => {
      expectTypeOf(work.transaction).toEqualTypeOf<undefined>();
    }),
  ).toBeFunction();
  // @ts-expect-error: memory has no transactions
  expectTypeOf(() => handleOnce(plain, inbox, () => undefined)).toBeFunction();
});

test("a handler written for any work fits", () => {
  const handle = (_: Order, work: Work): number => work.attempt;
  expectTypeOf(handleOnce(plain, options, handle)).toEqualTypeOf<Deliver<Order, number>>();
});
