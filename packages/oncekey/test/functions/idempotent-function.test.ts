import { createIdempotency, type IdempotencyEvent } from "oncekey";
import { idempotentFunction } from "oncekey/functions";
import { memoryStore } from "oncekey/stores/memory";
import { describe, expect, it } from "vitest";

interface Order {
  readonly id: string;
  readonly tenant: string;
  readonly amount: number;
}

const ORDER: Order = { id: "order-1", tenant: "acme", amount: 10 };
const byOrder = {
  operation: "charge",
  scope: ({ tenant }: Order) => tenant,
  key: ({ id }: Order) => id,
};

function instance() {
  const events: IdempotencyEvent[] = [];
  const store = memoryStore({ sweepIntervalMs: 0 });
  const idempotency = createIdempotency({ store, onEvent: (event) => void events.push(event) });
  return { idempotency, events };
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "resolved",
    (error) => error.code ?? error,
  );

describe("idempotentFunction", () => {
  it("runs the function once for each key and scope that its arguments have", async () => {
    const { idempotency } = instance();
    const charged: Order[] = [];
    const charge = idempotentFunction(idempotency, byOrder, (order: Order) => charged.push(order));
    const orders = [ORDER, ORDER, { ...ORDER, tenant: "other" }, { ...ORDER, id: "order-2" }, ORDER];
    expect(await Promise.all(orders.map((order) => charge(order)))).toEqual([1, 1, 2, 3, 1]);
    expect(charged).toHaveLength(3);
  });

  it("compares all arguments, unless it is told what was asked, or to compare nothing", async () => {
    const { idempotency } = instance();
    const all = idempotentFunction(idempotency, byOrder, (_: Order, note?: string) => note);
    expect(await all(ORDER, "first")).toBe("first");
    expect(await codeOf(all(ORDER, "second"))).toBe("KEY_REUSED");
    const some = { ...byOrder, operation: "some", input: ({ amount }: Order) => amount };
    const chosen = idempotentFunction(idempotency, some, (_: Order, note: () => string) => note());
    expect(await chosen(ORDER, () => "first")).toBe("first");
    expect(await chosen(ORDER, () => "second")).toBe("first");
    expect(await codeOf(chosen({ ...ORDER, amount: 11 }, () => "third"))).toBe("KEY_REUSED");
    const off = { ...byOrder, operation: "off", fingerprint: "off" } as const;
    const none = idempotentFunction(idempotency, off, ({ amount }: Order) => amount);
    expect([await none(ORDER), await none({ ...ORDER, amount: 11 })]).toEqual([10, 10]);
  });

  it("keeps this, name and number of parameters, and what was noted on the function", async () => {
    const { idempotency } = instance();
    const till = {
      drawer: 0,
      put: idempotentFunction(
        idempotency,
        { operation: "put", scope: "till", key: (_, id) => id },
        Object.assign(
          function put(this: { drawer: number }, amount: number, _id: string) {
            this.drawer += amount;
            return this.drawer;
          },
          { route: "/put" },
        ),
      ),
    };
    expect([await till.put(5, "a"), await till.put(5, "a"), await till.put(2, "b")]).toEqual([5, 5, 7]);
    const { name, length } = till.put;
    expect([name, length, (till.put as { readonly route?: unknown }).route]).toEqual(["put", 2, "/put"]);
  });

  it("takes values in place of functions, and the other options of run", async () => {
    const { idempotency } = instance();
    const aborted = AbortSignal.abort(new Error("left"));
    const migrate = idempotentFunction(
      idempotency,
      { operation: "migrate", scope: "service", key: 7, onCompleted: "reject", fingerprint: "off" },
      async () => "migrated",
    );
    expect(await migrate()).toBe("migrated");
    expect(await codeOf(migrate())).toBe("ALREADY_COMPLETED");
    const options = { ...byOrder, operation: "slow", signal: (_: Order, signal?: AbortSignal) => signal };
    const codec = { encode: (url: URL) => url.href, decode: (text: unknown) => new URL(String(text)) };
    const slow = idempotentFunction(
      idempotency,
      { ...options, input: ({ id }) => id, result: codec },
      async (_: Order, _signal?: AbortSignal) => {
        await new Promise((done) => setTimeout(done, 20));
        return new URL("https://example.test/");
      },
    );
    const first = slow(ORDER);
    await expect(slow(ORDER, aborted)).rejects.toThrow("left");
    expect((await first).host).toBe("example.test");
    expect((await slow(ORDER)).host).toBe("example.test");
  });

  it("has its work within reach, also in what it calls, and not outside", async () => {
    const { idempotency } = instance();
    const other = instance().idempotency;
    const helper = async () => {
      await Promise.resolve();
      return idempotency.currentWork();
    };
    const charge = idempotentFunction(idempotency, byOrder, async (order: Order) => {
      expect(idempotency.currentWork("at-least-once").attempt).toBe(1);
      expect(await helper()).toBe(idempotency.currentWork());
      expect(() => other.currentWork()).toThrow(/No protected function/);
      expect(() => idempotency.currentWork("at-most-once")).toThrow(/counts on at-most-once/);
      // The innermost, and each instance has its own.
      const outer = idempotency.currentWork();
      const call = { operation: "inner", scope: "a", key: order.id, fingerprint: "off" } as const;
      await other.run(call, (work) => {
        expect(other.currentWork()).toBe(work);
        expect(idempotency.currentWork()).toBe(outer);
      });
      await idempotency.run(call, (work) => expect(idempotency.currentWork()).toBe(work));
      await outer.step("pay", (step) => expect(idempotency.currentWork()).toBe(step));
      return idempotency.currentWork() === outer;
    });
    expect(await charge(ORDER)).toBe(true);
    expect(() => idempotency.currentWork()).toThrow(expect.objectContaining({ code: "NOT_PROTECTED" }));
  });

  it("goes on where a failed attempt was, by the steps of its work", async () => {
    const { idempotency } = instance();
    const effects: string[] = [];
    const charge = idempotentFunction(idempotency, byOrder, async ({ amount }: Order) => {
      const { step } = idempotency.currentWork();
      await step("reserve", () => void effects.push("reserved"));
      effects.push("tried");
      if (effects.length < 3) throw new Error("declined");
      return amount;
    });
    await expect(charge(ORDER)).rejects.toThrow("declined");
    expect(await charge(ORDER)).toBe(10);
    expect(effects).toEqual(["reserved", "tried", "tried"]);
  });

  it("can be nested, and used in parallel on one store", async () => {
    const { idempotency } = instance();
    const runs: string[] = [];
    const pay = idempotentFunction(idempotency, { ...byOrder, operation: "pay" }, async ({ id }: Order) => {
      runs.push(`pay ${id}`);
      return id;
    });
    const place = idempotentFunction(
      idempotency,
      byOrder,
      async (order: Order) => `${await pay(order)} placed`,
    );
    const orders = Array.from({ length: 20 }, (_, index) => ({ ...ORDER, id: `order-${index % 5}` }));
    const placed = await Promise.all(orders.map((order) => place(order)));
    expect(new Set(placed).size).toBe(5);
    expect(runs).toHaveLength(5);
    const again = (order: Order): Promise<unknown> => itself(order);
    const itself = idempotentFunction(idempotency, { ...byOrder, operation: "self" }, again);
    expect(await codeOf(itself(ORDER))).toBe("KEY_REENTERED");
  });
});

describe("the options of idempotentFunction", () => {
  const wrap = (options: unknown, fn: unknown = () => 1) =>
    idempotentFunction(instance().idempotency, options as never, fn as never);
  const problemsOf = (make: () => unknown): unknown => {
    try {
      return make();
    } catch (error) {
      return (error as { readonly problems: unknown }).problems;
    }
  };

  it("are checked when the function is made, all of them at once", () => {
    expect(problemsOf(() => wrap({ operation: "", input: 1, signal: 1, leasMs: 1 }))).toEqual([
      expect.stringMatching(/^leasMs/),
      expect.stringMatching(/^operation must be a text/),
      expect.stringMatching(/^signal must be/),
      expect.stringMatching(/^key is missing/),
      expect.stringMatching(/^input must be a function/),
    ]);
    expect(problemsOf(() => wrap(undefined))).toEqual([expect.stringMatching(/^options must be/)]);
    expect(problemsOf(() => wrap(byOrder, 1))).toEqual([expect.stringMatching(/third argument/)]);
    expect(problemsOf(() => wrap({ ...byOrder, leaseMs: 0 }))).toEqual([expect.stringMatching(/^leaseMs/)]);
    expect(() => wrap({ ...byOrder, guarantee: "exactly-once" })).toThrow(/no transactions/);
  });

  it("that fail at a call refuse it, and it is counted; nothing is run", async () => {
    const { idempotency, events } = instance();
    const run: number[] = [];
    const charge = (options: object) =>
      codeOf(
        idempotentFunction(idempotency, { ...byOrder, ...options }, (order: Order) => run.push(order.amount))(
          ORDER,
        ),
      );
    const fails = () => {
      throw new RangeError("no");
    };
    expect(await charge({ scope: fails })).toBe("SCOPE_FAILED");
    expect(await charge({ scope: () => undefined })).toBe("SCOPE_MISSING");
    expect(await charge({ key: () => null })).toBe("KEY_MISSING");
    expect(events.map((event) => event.type === "finished" && event.outcome).filter(Boolean)).toEqual([
      "rejected",
      "missing_scope",
      "missing_key",
    ]);
    expect(await charge({ key: fails })).toBeInstanceOf(RangeError);
    expect(run).toEqual([]);
  });

  it("leave the scope to the instance only where they have none", async () => {
    const idempotency = createIdempotency({ store: memoryStore({ sweepIntervalMs: 0 }), scope: "global" });
    const { scope: _, ...unscoped } = byOrder;
    const charge = idempotentFunction(idempotency, unscoped, ({ amount }: Order) => amount);
    expect(await charge(ORDER)).toBe(10);
    const missing = idempotentFunction(
      idempotency,
      { ...byOrder, scope: undefined },
      ({ amount }: Order) => amount,
    );
    expect(await codeOf(missing(ORDER))).toBe("SCOPE_MISSING");
  });
});
