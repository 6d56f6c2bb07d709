/**
 * @module
 * A class with decorated methods, for both kinds of decorators: tests compile this text for the one and for the other, and run it.
 *
 * So it imports nothing but types, and takes the rest as arguments.
 */
import type { Idempotency } from "../../src/core/idempotency.js";
import type { Idempotent as Decorator } from "../../src/functions/index.js";

export interface Order {
  readonly id: string;
  readonly tenant: string;
}

type Instance = Idempotency<never, "at-least-once", false, never>;

export function decorated(Idempotent: typeof Decorator, idempotency: Instance) {
  const ofOrder = {
    scope: (order: { readonly tenant: string; readonly id: string }) => order.tenant,
    key: (order: { readonly tenant: string; readonly id: string }) => order.id,
  };

  class Orders {
    readonly log: string[] = [];
    readonly idempotency: Instance | undefined = idempotency;
    readonly tenant = "injected";

    @Idempotent(idempotency, { operation: "create", ...ofOrder })
    async create(order: Order, note = "none"): Promise<string> {
      this.log.push(`${order.id} ${note} ${idempotency.currentWork().attempt}`);
      return `created ${order.id}`;
    }

    @Idempotent(() => idempotency, { operation: "refund", ...ofOrder })
    async refund<T extends Order>(order: T, amount: number): Promise<T> {
      this.log.push(`${order.id} ${amount}`);
      return order;
    }

    @Idempotent((self: Orders) => self.idempotency as Instance, {
      operation: "close",
      scope(this: Orders) {
        return this.tenant;
      },
      key: () => "close",
    })
    async close(): Promise<number> {
      return this.log.push("closed");
    }

    @Idempotent(idempotency, { operation: "count", scope: "all", key: "count", fingerprint: "off" })
    static async count(): Promise<string> {
      // biome-ignore lint/complexity/noThisInStatic: that it is the class is what is tested.
      return this.name;
    }
  }
  return Orders;
}
