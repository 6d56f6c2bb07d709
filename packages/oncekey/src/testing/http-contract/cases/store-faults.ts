/**
 * @module
 * The store fails, hangs, or lies.
 */
import assert from "node:assert/strict";
import {
  assertExecuted,
  assertRefused,
  assertReplay,
  counter,
  fieldValue,
  gate,
  type HttpCase,
  isReplay,
  post,
  until,
} from "../case.js";
import { json } from "../route.js";

const refused = async (): Promise<never> => {
  throw new Error("connect ECONNREFUSED 127.0.0.1:6379");
};

/** Far below what a client waits, far above a slow machine. */
const BOUND_MS = 5_000;

export const storeFaultCases: readonly HttpCase[] = [
  {
    name: "when the store is down a request is refused and does not run",
    why: "without the record nobody knows whether the work was done",
    async run(context) {
      const runs = counter();
      const server = await context.serve(
        { path: "/orders", handle: () => json(++runs.count) },
        { intercept: { claim: refused } },
      );
      const response = await server.send(post("/orders", "k1"));
      assertRefused(response, "STORE_UNAVAILABLE");
      assert.ok(!response.body.includes("ECONNREFUSED"), "the fault of the store leaks");
      assert.equal(runs.count, 0);
    },
  },
  {
    name: "with onStoreDown run the work runs unprotected and says so",
    why: "a service that would rather charge twice than not at all has to see when it did",
    async run(context) {
      const runs = counter();
      const server = await context.serve(
        { path: "/orders", protect: { onStoreDown: "run" }, handle: () => json(++runs.count, 201) },
        { intercept: { claim: refused } },
      );
      for (const key of ["k1", "k2"]) {
        const response = await server.send(post("/orders", key));
        assertExecuted(response, 201);
        assert.equal(fieldValue(response, "idempotency-degraded"), "store-unavailable");
      }
      assert.equal(runs.count, 2);
      assert.ok(server.events.some(({ type }) => type === "unprotected"));
    },
  },
  {
    name: "a claim that hangs is answered within a bound",
    why: "a store that does not answer must not take the service with it",
    async run(context) {
      const never = gate();
      const runs = counter();
      const server = await context.serve(
        { path: "/orders", protect: { storeTimeoutMs: 300 }, handle: () => json(++runs.count) },
        { intercept: { claim: () => never.opened.then(() => Promise.reject(new Error("late"))) } },
      );
      const pending = server.open(post("/orders", "k1"));
      assertRefused(await pending.response, "STORE_UNAVAILABLE");
      assert.ok((await pending.endMs) < BOUND_MS);
      assert.equal(runs.count, 0);
      never.open();
    },
  },
  {
    name: "a completion that fails does not turn success into an error",
    why: "the charge is made: whoever is told that it failed charges again",
    async run(context) {
      const runs = counter();
      let down = true;
      const server = await context.serve(
        { path: "/orders", handle: () => json({ run: ++runs.count }, 201) },
        { intercept: { complete: (_, next) => (down ? refused() : next()) } },
      );
      const first = await server.send(post("/orders", "k1"));
      assertExecuted(first, 201);
      // Answered from what is still to be stored.
      assertReplay(first, await server.send(post("/orders", "k1")));
      assert.ok(server.events.some(({ type }) => type === "completion-failed"));
      down = false;
      await until(
        () => server.events.some(({ type }) => type === "completed"),
        "the completion is tried again",
      );
      assertReplay(first, await server.send(post("/orders", "k1")));
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "a completion that hangs holds the answer only for a bound",
    why: "the caller's answer is there; the record may follow",
    async run(context) {
      const never = gate();
      const server = await context.serve(
        { path: "/orders", protect: { storeTimeoutMs: 300 }, handle: () => json(1, 201) },
        {
          intercept: {
            async complete(_, next) {
              await never.opened;
              return next();
            },
          },
        },
      );
      const pending = server.open(post("/orders", "k1"));
      assertExecuted(await pending.response, 201);
      assert.ok((await pending.endMs) < BOUND_MS);
      assert.ok(server.calls("complete").length > 0);
      never.open();
    },
  },
  {
    name: "a release that fails leaves the handler's own error to its caller",
    why: "two faults at once, and the one that matters is the work's",
    async run(context) {
      const server = await context.serve(
        { path: "/orders", handle: () => json({ error: "provider" }, 502) },
        { intercept: { release: refused } },
      );
      const response = await server.send(post("/orders", "k1"));
      assertExecuted(response, 502);
      assert.deepEqual(JSON.parse(response.body.toString()), { error: "provider" });
      assert.ok(server.calls("release").length > 0);
    },
  },
  {
    name: "a record that cannot be read is an error, and nothing runs",
    why: "damage is not absence",
    async run(context) {
      const runs = counter();
      let damaged = false;
      const server = await context.serve(
        { path: "/orders", handle: () => json(++runs.count, 201) },
        {
          intercept: {
            async claim(_, next) {
              const outcome = await next();
              if (!damaged) return outcome;
              return {
                ...(outcome as object),
                outcome: { head: "\u0000 not ours", body: new Uint8Array(3) },
              };
            },
          },
        },
      );
      assertExecuted(await server.send(post("/orders", "k1")), 201);
      damaged = true;
      assertRefused(await server.send(post("/orders", "k1")), "RECORD_UNREADABLE");
      damaged = false;
      assert.ok(isReplay(await server.send(post("/orders", "k1"))));
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "a store that is full refuses new keys",
    why: "to forget a record is to run its work again",
    async run(context) {
      const runs = counter();
      const server = await context.serve(
        { path: "/orders", handle: () => json(++runs.count) },
        { intercept: { claim: async () => ({ kind: "full", limit: "records" }) } },
      );
      assertRefused(await server.send(post("/orders", "k1")), "CAPACITY_EXCEEDED");
      assert.equal(runs.count, 0);
    },
  },
];
