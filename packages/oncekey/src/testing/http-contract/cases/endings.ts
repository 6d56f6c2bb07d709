/**
 * @module
 * How work ends, and which endings are kept: one look at the final answer, whoever made it.
 */
import assert from "node:assert/strict";
import {
  assertExecuted,
  assertRefused,
  assertReplay,
  counter,
  delay,
  describe,
  fieldValue,
  gate,
  type HttpCase,
  heldWork,
  isReplay,
  post,
  until,
} from "../case.js";
import type { HttpContractContext } from "../context.js";
import { failure, json, type Reply } from "../route.js";

/** The first run ends in `reply`, which has to be answered with a status of `statuses` and forgotten: the repeat runs. */
async function runsAgainAfter(
  context: HttpContractContext,
  reply: () => Reply | Promise<Reply>,
  fits: (status: number) => boolean,
): Promise<void> {
  const runs = counter();
  const server = await context.serve({
    path: "/orders",
    handle: () => (++runs.count === 1 ? reply() : json({ run: runs.count }, 201)),
  });
  const first = await server.send(post("/orders", "k1"));
  assert.ok(fits(first.status), describe(first));
  assert.ok(!isReplay(first));
  const second = await server.send(post("/orders", "k1"));
  assertExecuted(second, 201);
  assertReplay(second, await server.send(post("/orders", "k1")));
  assert.equal(runs.count, 2);
}

const isFailure = (status: number): boolean => status >= 500;

const NOT_KEPT = [401, 407, 408, 421, 425, 429, 500, 502, 503, 504];

export const endingCases: readonly HttpCase[] = [
  {
    name: "a server error frees the key",
    why: "the client was told to try again",
    run: (context) =>
      runsAgainAfter(
        context,
        () => json({ error: "provider" }, 500),
        (status) => status === 500,
      ),
  },
  {
    name: "statuses that speak of the caller or the moment free the key",
    why: "a stored 401 or 429 would answer for a day",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        handle: ({ body }) => json({ run: ++runs.count }, (body as { status: number }).status),
      });
      for (const status of NOT_KEPT) {
        for (const _ of [1, 2])
          assertExecuted(await server.send(post("/orders", `k${status}`, { status })), status);
      }
      assert.equal(runs.count, 2 * NOT_KEPT.length);
      assert.equal(server.calls("release").length, runs.count);
    },
  },
  {
    name: "a client error that was thrown is kept like one that was returned",
    why: "frameworks turn thrown errors with a status into answers; the client sees no difference",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        handle: () => {
          runs.count++;
          return failure(422, "out of stock");
        },
      });
      const first = await server.send(post("/orders", "k1"));
      assertExecuted(first, 422);
      assertReplay(first, await server.send(post("/orders", "k1")));
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "a throw before any answer is an error to the caller and frees the key",
    why: "a crash is not a result",
    run: (context) => runsAgainAfter(context, () => failure(undefined), isFailure),
  },
  {
    name: "a rejection before any answer is an error to the caller and frees the key",
    why: "a crash after an await is not a result either",
    run: (context) =>
      runsAgainAfter(
        context,
        async () => {
          await delay(5);
          return failure(undefined);
        },
        isFailure,
      ),
  },
  {
    name: "a throw after the answer changes nothing",
    why: "the client sees the first answer, whole, with its own status, and the work is not run again",
    async run(context) {
      for (const late of [false, true]) {
        const runs = counter();
        const reply: Reply = { kind: "end-then-throw", status: 201, value: { ok: true } };
        const server = await context.serve({
          path: "/orders",
          handle: () => {
            runs.count++;
            return late ? delay(5).then(() => reply) : reply;
          },
        });
        const first = await server.send(post("/orders", "k1"));
        assertExecuted(first, 201);
        assert.deepEqual(JSON.parse(first.body.toString()), { ok: true });
        assertReplay(first, await server.send(post("/orders", "k1")));
        assert.equal(runs.count, 1);
      }
    },
  },
  {
    name: "a handler that breaks the connection has failed",
    why: "nobody got an answer, so the retry has to run",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        handle: () => (++runs.count === 1 ? { kind: "destroy" } : json({ run: runs.count }, 201)),
      });
      await assert.rejects(server.send(post("/orders", "k1")));
      const second = await server.send(post("/orders", "k1"));
      assertExecuted(second, 201);
      assertReplay(second, await server.send(post("/orders", "k1")));
      assert.equal(runs.count, 2);
    },
  },
  {
    name: "keep decides by the final answer",
    why: "a service may keep its 500, or not keep its 404",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        protect: { keep: (ending) => ending.kind === "answered" && ending.status !== 404 },
        handle: ({ body }) => json({ run: ++runs.count }, (body as { status: number }).status),
      });
      const kept = await server.send(post("/orders", "k500", { status: 500 }));
      assertExecuted(kept, 500);
      assertReplay(kept, await server.send(post("/orders", "k500", { status: 500 })));
      for (const _ of [1, 2])
        assertExecuted(await server.send(post("/orders", "k404", { status: 404 })), 404);
      assert.equal(runs.count, 3);
    },
  },
  {
    name: "our own refusals are never stored",
    why: "a stored 409 or 422 would be replayed in place of the answer",
    async run(context) {
      const { runs, open, handle } = heldWork();
      const server = await context.serve({
        path: "/orders",
        protect: { onInFlight: "reject" },
        handle,
      });
      const pending = server.send(post("/orders", "k1"));
      await until(() => runs.count === 1, "the first request runs");
      assertRefused(await server.send(post("/orders", "k1")), "IN_FLIGHT");
      assertRefused(await server.send(post("/orders", "k1", { amount: 11 })), "KEY_REUSED");
      open();
      const first = await pending;
      assertExecuted(first, 201);
      assertRefused(await server.send(post("/orders", "k1", { amount: 11 })), "KEY_REUSED");
      assertReplay(first, await server.send(post("/orders", "k1")));
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "headers of a request that look like marks of ours have no effect",
    why: "an internal marker in a header is an open door",
    async run(context) {
      const runs = counter();
      const server = await context.serve({ path: "/orders", handle: () => json(++runs.count) });
      const marked = post("/orders", "k1", {}, [
        ["Idempotency-Replayed", "true"],
        ["Idempotency-Body", "not-retained"],
        ["Idempotency-Degraded", "store-unavailable"],
        ["X-Oncekey", "replay"],
      ]);
      const first = await server.send(marked);
      assertExecuted(first, 200);
      for (const name of ["idempotency-body", "idempotency-degraded"])
        assert.equal(fieldValue(first, name), undefined);
      assertReplay(first, await server.send(post("/orders", "k1", {})));
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "marks of ours that a handler sets are not kept",
    why: "a gateway behind which another one stands would mark a first answer as a replay for ever",
    async run(context) {
      const server = await context.serve({
        path: "/orders",
        handle: () => json(1, 200, [["Idempotency-Body", "not-retained"]]),
      });
      await server.send(post("/orders", "k1"));
      const again = await server.send(post("/orders", "k1"));
      assert.ok(isReplay(again));
      assert.equal(fieldValue(again, "idempotency-body"), undefined);
    },
  },
  ...["after its lease", "while it waits"].map(
    (when): HttpCase => ({
      name: `work that never ends does not hold its key for ever: a repeat ${when} runs`,
      why: "renewal ends at maxRunMs, and the lease lapses by itself",
      async run(context) {
        const never = gate();
        const runs = counter();
        const server = await context.serve({
          path: "/orders",
          protect: { leaseMs: 800, maxRunMs: 200, onInFlight: { waitMs: 5_000 } },
          async handle() {
            if (++runs.count === 1) await never.opened;
            return json({ run: runs.count }, 201);
          },
        });
        const stuck = server.open(post("/orders", "k1"));
        stuck.response.catch(() => undefined);
        await until(() => runs.count === 1, "the first request runs");
        if (when === "after its lease") await delay(1_500);
        assertExecuted(await server.send(post("/orders", "k1")), 201);
        assert.equal(runs.count, 2);
        assert.ok(server.events.some(({ type }) => type === "lease-lost"));
        stuck.disconnect();
        never.open();
      },
    }),
  ),
  {
    name: "the handler sees its attempt and a key for others",
    why: "the same key downstream over all attempts is what makes a retry safe beyond this service",
    async run(context) {
      const seen: { attempt: number; key: string; held: boolean }[] = [];
      const server = await context.serve({
        path: "/orders",
        handle: ({ work }) => {
          const { attempt, signal, downstreamKey } = work();
          seen.push({ attempt, key: downstreamKey("provider"), held: !signal.aborted });
          return json(1, seen.length === 1 ? 500 : 201);
        },
      });
      for (const key of ["k1", "k1", "k2"]) await server.send(post("/orders", key));
      const [first, second, other] = seen;
      assert.ok(first !== undefined && first.attempt === 1 && first.held);
      assert.equal(second?.key, first.key);
      assert.notEqual(other?.key, first.key);
      assert.match(first.key, /^[\w-]{43}$/);
    },
  },
];
