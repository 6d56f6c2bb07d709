/**
 * What compiles and what does not on a method. `decorators.test.ts` compiles this file for both kinds of decorators.
 */
import { createIdempotency, type Idempotency } from "oncekey";
import { Idempotent } from "oncekey/functions";
import { memoryStore } from "oncekey/stores/memory";
import { describe, it } from "vitest";

interface Order {
  readonly id: string;
  readonly tenant: string;
}

const plain = createIdempotency({ store: memoryStore() });
const scoped = createIdempotency({ store: memoryStore(), scope: "global" });
const byId = { operation: "create", scope: "a", key: (order: Order) => order.id };

/** Never called, since the test runner's compiler may not know decorators: only the decorators themselves are typed. */
const compiled = (_: () => unknown): void => undefined;

type Method = (order: Order, note?: string) => Promise<string>;
declare const method: Method;
declare const synchronous: (order: Order) => string;
declare const ofNumbers: (amount: number) => Promise<string>;
declare const nothing: () => Promise<string>;
declare const context: ClassMethodDecoratorContext;
declare const descriptor: TypedPropertyDescriptor<Method>;
declare const ofNumbersDescriptor: TypedPropertyDescriptor<typeof ofNumbers>;
declare const synchronousDescriptor: TypedPropertyDescriptor<typeof synchronous>;

describe("Idempotent", () => {
  it("stands on methods that take at least what its functions take, and return a promise", () => {
    compiled(() => [
      Idempotent(plain, byId)(method, context),
      Idempotent(plain, byId)({}, "create", descriptor),
      Idempotent(plain, { ...byId, key: "k" })(nothing, context),
      Idempotent(plain, { ...byId, key: (order: { readonly id: string }) => order.id })(method, context),
      // @ts-expect-error It takes a number and no order.
      Idempotent(plain, byId)(ofNumbers, context),
      // @ts-expect-error The same, as a legacy decorator.
      Idempotent(plain, byId)({}, "create", ofNumbersDescriptor),
      // @ts-expect-error It has no order to take.
      Idempotent(plain, byId)(nothing, context),
      // @ts-expect-error Its callers count on a value, and would get a promise.
      Idempotent(plain, byId)(synchronous, context),
      // @ts-expect-error The same, as a legacy decorator.
      Idempotent(plain, byId)({}, "create", synchronousDescriptor),
    ]);
  });

  it("takes an instance, or what finds one", () => {
    class Service {
      readonly idempotency = plain;
    }
    compiled(() => [
      Idempotent(() => plain, byId)(method, context),
      Idempotent((self: Service) => self.idempotency, byId)(method, context),
      (instance: Idempotency) => Idempotent(instance, byId)(method, context),
      // @ts-expect-error A service is no instance.
      Idempotent((self: Service) => self, byId),
    ]);
  });

  it("requires a scope unless the instance has one, and refuses misspelt options", () => {
    const { scope: _, ...unscoped } = byId;
    compiled(() => [
      // @ts-expect-error Whose key it is has to be said.
      Idempotent(plain, unscoped),
      Idempotent(scoped, unscoped)(method, context),
      Idempotent(() => scoped, unscoped)(method, context),
      // @ts-expect-error leaseMs is meant.
      Idempotent(plain, { ...byId, leasMs: 1 }),
      // @ts-expect-error The memory store has no transactions.
      Idempotent(plain, { ...byId, guarantee: "exactly-once" }),
    ]);
  });
});
