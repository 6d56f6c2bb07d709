/**
 * @module
 * Several instances on one store, one after the other (a deploy) or at once (several processes).
 */
import assert from "node:assert/strict";
import {
  assertExecuted,
  assertRefused,
  assertReplay,
  counter,
  delay,
  type HttpCase,
  heldWork,
  isReplay,
  post,
  until,
} from "../case.js";
import { type ContractRoute, json } from "../route.js";

/** A route whose runs are counted over all servers. */
function orders(runs: { count: number }, changes: Partial<ContractRoute> = {}): ContractRoute {
  return { path: "/orders", handle: () => json({ run: ++runs.count }, 201), ...changes };
}

export const processCases: readonly HttpCase[] = [
  {
    name: "another instance answers a repeat",
    why: "the retry comes to another process than the first request did",
    async run(context) {
      const store = await context.store();
      const runs = counter();
      const one = await context.serve(orders(runs), { store });
      const other = await context.serve(orders(runs), { store });
      const first = await one.send(post("/orders", "k1"));
      assertReplay(first, await other.send(post("/orders", "k1")));
      assertRefused(await other.send(post("/orders", "k1", { amount: 11 })), "KEY_REUSED");
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "a repeat at another instance waits for the first",
    why: "a load balancer knows nothing of keys",
    async run(context) {
      const store = await context.store();
      const { runs, open, handle } = heldWork();
      const route = orders(runs, {
        protect: { onInFlight: { waitMs: 10_000 } },
        handle,
      });
      const one = await context.serve(route, { store });
      const other = await context.serve(route, { store });
      const first = one.send(post("/orders", "k1"));
      await until(() => runs.count === 1, "the first request runs");
      const repeats = Array.from({ length: 5 }, () => other.send(post("/orders", "k1")));
      await delay(50);
      open();
      for (const repeat of await Promise.all(repeats)) assertReplay(await first, repeat);
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "ten requests at each of two instances are one run",
    why: "exactly one claim wins, whoever asks",
    async run(context) {
      const store = await context.store();
      const runs = counter();
      const route = orders(runs, { protect: { onInFlight: { waitMs: 10_000 } } });
      const servers = [await context.serve(route, { store }), await context.serve(route, { store })];
      const all = await Promise.all(
        servers.flatMap((server) => Array.from({ length: 10 }, () => server.send(post("/orders", "k1")))),
      );
      assert.equal(runs.count, 1);
      assert.equal(all.filter((response) => !isReplay(response)).length, 1);
      for (const { status } of all) assert.equal(status, 201);
    },
  },
  {
    name: "renaming a route parameter runs nothing again",
    why: "a deploy that says :orderId for :id must not charge everybody's retries",
    async run(context) {
      const store = await context.store();
      const runs = counter();
      const before = await context.serve(orders(runs, { path: "/orders/:id" }), { store });
      const after = await context.serve(orders(runs, { path: "/orders/:orderId" }), { store });
      assertReplay(await before.send(post("/orders/7", "k1")), await after.send(post("/orders/7", "k1")));
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "an operation that is named keeps its records when its route moves",
    why: "a new version of the path is the same operation, where its path is not compared",
    async run(context) {
      const store = await context.store();
      const runs = counter();
      const protect = { operation: "charge", fingerprint: "off" } as const;
      const before = await context.serve(orders(runs, { path: "/v1/charge", protect }), { store });
      const after = await context.serve(orders(runs, { path: "/v2/charge", protect }), { store });
      assertReplay(await before.send(post("/v1/charge", "k1")), await after.send(post("/v2/charge", "k1")));
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "another rule of comparison refuses nobody",
    why: "a deploy that changes what is compared must not answer 422 to honest retries, nor run them",
    async run(context) {
      const store = await context.store();
      const runs = counter();
      const before = await context.serve(orders(runs), { store });
      const after = await context.serve(orders(runs, { protect: { fingerprint: { fields: ["/amount"] } } }), {
        store,
      });
      assertReplay(await before.send(post("/orders", "k1")), await after.send(post("/orders", "k1")));
      assert.equal(runs.count, 1);
      assert.ok(after.events.some(({ type }) => type === "fingerprint-skipped"));
    },
  },
  {
    name: "an instance that shuts down finishes its work and takes no more",
    why: "a deploy in the middle of a payment",
    async run(context) {
      const { runs, open, handle } = heldWork();
      const server = await context.serve(
        orders(runs, {
          handle,
        }),
      );
      const first = server.send(post("/orders", "k1"));
      await until(() => runs.count === 1, "the first request runs");
      const closed = server.idempotency.close({ graceMs: 5_000 });
      assertRefused(await server.send(post("/orders", "k2")), "CLOSING");
      open();
      assertExecuted(await first, 201);
      assert.equal((await closed).unlandedCompletions, 0);
      assert.equal(server.calls("complete").length, 1);
      assert.equal(runs.count, 1);
    },
  },
];
