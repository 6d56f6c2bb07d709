/**
 * @module
 * At most once and exactly once, as an HTTP client sees them.
 */
import assert from "node:assert/strict";
import {
  assertExecuted,
  assertRefused,
  assertReplay,
  counter,
  delay,
  fieldValues,
  gate,
  type HttpCase,
  isReplay,
  post,
} from "../case.js";
import type { ContractServer, HttpContractContext, TransactionalStore } from "../context.js";
import { type CommonOptions, failure, json, type Reply } from "../route.js";

const atMostOnce: CommonOptions = { guarantee: "at-most-once", acceptsLostWrites: true };

/** The first run ends in `reply`; the key is then held, and the work is not started again. */
async function holdsAfter(context: HttpContractContext, reply: () => Reply): Promise<void> {
  const runs = counter();
  const server = await context.serve({
    path: "/orders",
    protect: atMostOnce,
    handle: () => {
      runs.count++;
      return reply();
    },
  });
  const first = await server.send(post("/orders", "k1")).catch(() => undefined);
  assert.ok(first === undefined || first.status >= 408);
  for (const _ of [1, 2]) assertRefused(await server.send(post("/orders", "k1")), "OUTCOME_UNKNOWN");
  assert.equal(runs.count, 1);
}

interface Rows {
  readonly server: ContractServer;
  readonly transactional: TransactionalStore<unknown>;
  readonly runs: { count: number };
}

/** Each run inserts a row `run <n>` through the transaction, and then answers as `reply` says. */
async function serveRows(
  context: HttpContractContext,
  reply: (run: number) => Reply | Promise<Reply>,
  protect: CommonOptions = {},
): Promise<Rows> {
  const transactional = await context.transactional();
  const runs = counter();
  const server = await context.serve(
    {
      path: "/orders",
      protect: { ...protect, guarantee: "exactly-once" },
      async handle({ work }) {
        const run = ++runs.count;
        await transactional.insert(work().transaction, `run ${run}`);
        return reply(run);
      },
    },
    { store: transactional.store },
  );
  return { server, transactional, runs };
}

export const guaranteeCases: readonly HttpCase[] = [
  {
    name: "at most once, a handler that says that nothing has happened may fail and be tried again",
    why: "a handler's throw is an answer by the time it is judged, so the word has to come another way",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        protect: atMostOnce,
        handle({ work }) {
          runs.count++;
          if (runs.count > 1) return json({ run: runs.count }, 201);
          work().notPerformed();
          return failure(503);
        },
      });
      assert.ok((await server.send(post("/orders", "k1"))).status >= 500);
      assert.equal((await server.send(post("/orders", "k1"))).status, 201);
      assert.equal(runs.count, 2);
    },
  },
  {
    name: "under at-most-once a throw leaves the outcome unknown",
    why: "the charge may have succeeded before the handler threw",
    run: (context) => holdsAfter(context, () => failure(undefined)),
  },
  {
    name: "under at-most-once a server error leaves the outcome unknown",
    why: "a 502 does not say that nothing happened",
    run: (context) => holdsAfter(context, () => json({}, 502)),
  },
  {
    name: "under at-most-once a broken answer leaves the outcome unknown",
    why: "nobody saw how it ended",
    run: (context) => holdsAfter(context, () => ({ kind: "destroy" })),
  },
  {
    name: "under at-most-once a refusal before the work frees the key",
    why: "a 401 says that nothing was done",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        protect: atMostOnce,
        handle: () => json({}, ++runs.count === 1 ? 401 : 201),
      });
      assertExecuted(await server.send(post("/orders", "k1")), 401);
      const second = await server.send(post("/orders", "k1"));
      assertExecuted(second, 201);
      assertReplay(second, await server.send(post("/orders", "k1")));
    },
  },
  {
    name: "a reconciler that finds the work done gives the answer",
    why: "the provider knows the charge; its receipt is the answer that was lost",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        protect: {
          ...atMostOnce,
          leaseMs: 800,
          onInFlight: { waitMs: 10_000 },
          onLapsed: () => ({
            kind: "done",
            result: { status: 201, headers: { Location: "/orders/1" }, body: { id: 1 } },
          }),
        },
        handle: () => {
          runs.count++;
          return failure(undefined);
        },
      });
      assert.ok((await server.send(post("/orders", "k1"))).status >= 500);
      for (const _ of [1, 2]) {
        const again = await server.send(post("/orders", "k1"));
        assert.equal(again.status, 201);
        assert.ok(isReplay(again));
        assert.deepEqual(fieldValues(again, "location"), ["/orders/1"]);
        assert.deepEqual(JSON.parse(again.body.toString()), { id: 1 });
      }
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "a reconciler that finds nothing done lets the work start again",
    why: "the provider has never heard of the charge",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        protect: {
          ...atMostOnce,
          leaseMs: 800,
          onInFlight: { waitMs: 10_000 },
          onLapsed: () => ({ kind: "not-done" }),
        },
        handle: () => (++runs.count === 1 ? failure(undefined) : json({ run: runs.count }, 201)),
      });
      assert.ok((await server.send(post("/orders", "k1"))).status >= 500);
      const second = await server.send(post("/orders", "k1"));
      assertExecuted(second, 201);
      assertReplay(second, await server.send(post("/orders", "k1")));
      assert.equal(runs.count, 2);
    },
  },
  {
    name: "under exactly-once rows and record commit together",
    why: "one transaction: both are there, or neither",
    needs: "transactions",
    async run(context) {
      const { server, transactional, runs } = await serveRows(context, (run) => json({ run }, 201));
      const first = await server.send(post("/orders", "k1"));
      assertExecuted(first, 201);
      assert.deepEqual(await transactional.rows(), ["run 1"]);
      assertReplay(first, await server.send(post("/orders", "k1")));
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "under exactly-once twenty repeats at once leave one row",
    why: "the promise is about the rows",
    needs: "transactions",
    async run(context) {
      const { server, transactional } = await serveRows(context, (run) => json({ run }, 201), {
        onInFlight: { waitMs: 10_000 },
      });
      const all = await Promise.all(Array.from({ length: 20 }, () => server.send(post("/orders", "k1"))));
      assert.equal(all.filter((response) => !isReplay(response)).length, 1);
      for (const { status } of all) assert.equal(status, 201);
      assert.deepEqual(await transactional.rows(), ["run 1"]);
    },
  },
  {
    name: "under exactly-once a failure leaves no row, and the retry one",
    why: "what was not kept has to be undone",
    needs: "transactions",
    async run(context) {
      for (const bad of [failure(undefined), json({}, 503)]) {
        const { server, transactional, runs } = await serveRows(context, (run) =>
          run === 1 ? bad : json({ run }, 201),
        );
        assert.ok((await server.send(post("/orders", "k1"))).status >= 500);
        assert.deepEqual(await transactional.rows(), []);
        assertExecuted(await server.send(post("/orders", "k1")), 201);
        assert.deepEqual(await transactional.rows(), ["run 2"]);
        assert.equal(runs.count, 2);
      }
    },
  },
  {
    name: "under exactly-once a kept refusal of the handler leaves its answer and no row",
    why: "out of stock is an answer, and half an order is not",
    needs: "transactions",
    async run(context) {
      const { server, transactional, runs } = await serveRows(context, () =>
        json({ error: "out of stock" }, 409),
      );
      const first = await server.send(post("/orders", "k1"));
      assertExecuted(first, 409);
      assertReplay(first, await server.send(post("/orders", "k1")));
      assert.deepEqual(await transactional.rows(), []);
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "under exactly-once nothing leaves before the commit",
    why: "bytes that a client has cannot be rolled back",
    needs: "transactions",
    async run(context) {
      const held = gate();
      const chunks = async function* (): AsyncIterable<Uint8Array> {
        yield Buffer.from("early");
        await held.opened;
        yield Buffer.from(" late");
      };
      const headers = [["Content-Type", "text/plain"]] as const;
      const { server, transactional } = await serveRows(context, () => ({
        kind: "stream",
        status: 200,
        headers,
        chunks,
      }));
      const pending = server.open(post("/orders", "k1"));
      let seen = false;
      pending.firstByteMs.then(
        () => {
          seen = true;
        },
        () => undefined,
      );
      await delay(150);
      assert.equal(seen, false, "bytes left before the commit");
      held.open();
      const first = await pending.response;
      assert.equal(first.body.toString(), "early late");
      assert.deepEqual(await transactional.rows(), ["run 1"]);
      assertReplay(first, await server.send(post("/orders", "k1")));
    },
  },
  {
    name: "under exactly-once a stream that cannot be held is rolled back",
    why: "it can neither be sent before the commit nor be kept",
    needs: "transactions",
    async run(context) {
      const chunks = async function* (): AsyncIterable<Uint8Array> {
        for (let sent = 0; sent < 10; sent++) yield new Uint8Array(1_000);
      };
      const headers = [["Content-Type", "application/octet-stream"]] as const;
      const stream: Reply = { kind: "stream", status: 200, headers, chunks };
      const { server, transactional } = await serveRows(context, () => stream, { maxResultBytes: 2_000 });
      assertRefused(await server.send(post("/orders", "k1")), "RESULT_TOO_LARGE");
      assert.deepEqual(await transactional.rows(), []);
    },
  },
];
