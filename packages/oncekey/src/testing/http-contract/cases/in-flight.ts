/**
 * @module
 * Repeats that come while the first request is still running.
 */
import assert from "node:assert/strict";
import {
  assertExecuted,
  assertRefused,
  assertReplay,
  assertSameAnswer,
  delay,
  type HttpCase,
  heldWork,
  isReplay,
  post,
  until,
} from "../case.js";
import type { ContractServer, HttpContractContext } from "../context.js";
import { type CommonOptions, failure, json, type Reply } from "../route.js";

interface Held {
  readonly server: ContractServer;
  /** Runs that have begun. */
  runs(): number;
  /** Lets run `number` (from 1) answer. */
  answer(number: number, reply: Reply): void;
}

/** Each run waits until the case says how it answers. */
async function serveHeld(context: HttpContractContext, protect: CommonOptions): Promise<Held> {
  const waiting: ((reply: Reply) => void)[] = [];
  const server = await context.serve({
    path: "/orders",
    protect,
    handle: () =>
      new Promise<Reply>((resolve) => {
        waiting.push(resolve);
      }),
  });
  return { server, runs: () => waiting.length, answer: (number, reply) => waiting[number - 1]?.(reply) };
}

const CALLERS = 20;

export const inFlightCases: readonly HttpCase[] = [
  {
    name: "with onInFlight reject a repeat is refused at once",
    why: "draft §2.7: 409 while the first request is still processed; RFC 9110 §10.2.3 for Retry-After",
    async run(context) {
      const { server, runs, answer } = await serveHeld(context, { onInFlight: "reject" });
      const first = server.send(post("/orders", "k1"));
      await until(() => runs() === 1, "the first request runs");
      assertRefused(await server.send(post("/orders", "k1")), "IN_FLIGHT");
      answer(1, json(1, 201));
      assertReplay(await first, await server.send(post("/orders", "k1")));
      assert.equal(runs(), 1);
    },
  },
  {
    name: "a repeat waits for the answer and gets it",
    why: "a client that retries too early wants the result, not a lecture",
    async run(context) {
      const { server, runs, answer } = await serveHeld(context, { onInFlight: { waitMs: 10_000 } });
      const first = server.send(post("/orders", "k1"));
      await until(() => runs() === 1, "the first request runs");
      const again = server.send(post("/orders", "k1"));
      await delay(50);
      answer(1, json({ total: 10 }, 201, [["Location", "/orders/1"]]));
      assertReplay(await first, await again);
      assert.equal(runs(), 1);
    },
  },
  {
    name: "a wait ends after waitMs",
    why: "no client waits for ever",
    async run(context) {
      const { server, runs, answer } = await serveHeld(context, { onInFlight: { waitMs: 50 } });
      const first = server.send(post("/orders", "k1"));
      await until(() => runs() === 1, "the first request runs");
      assertRefused(await server.send(post("/orders", "k1")), "IN_FLIGHT");
      answer(1, json(1));
      assertReplay(await first, await server.send(post("/orders", "k1")));
      assert.equal(runs(), 1);
    },
  },
  {
    name: "Prefer: wait shortens or lengthens the wait within its bound",
    why: "RFC 7240 §4.3: the client says how long it is ready to wait",
    async run(context) {
      const { server, runs, answer } = await serveHeld(context, {
        onInFlight: { waitMs: 60 },
        maxWaitMs: 20_000,
      });
      const preferring = (preference: string) =>
        server.send(post("/orders", "k1", undefined, [["Prefer", preference]]));
      const first = server.send(post("/orders", "k1", undefined));
      await until(() => runs() === 1, "the first request runs");
      assertRefused(await preferring("wait=0"), "IN_FLIGHT");
      // Unreadable is no wish: the route's own wait holds.
      assertRefused(await preferring("wait=soon"), "IN_FLIGHT");
      const patient = preferring("respond-async, wait=15");
      await delay(150);
      answer(1, json(1));
      assertReplay(await first, await patient);
    },
  },
  {
    name: "twenty repeats at once are one run and twenty equal answers",
    why: "the double click, the retry storm, the load balancer that sends twice",
    async run(context) {
      const { server, runs, answer } = await serveHeld(context, { onInFlight: { waitMs: 10_000 } });
      const all = Array.from({ length: CALLERS }, () => server.send(post("/orders", "k1")));
      await until(() => runs() > 0, "one of them runs");
      await delay(50);
      answer(1, json({ text: "ä".repeat(500) }, 201));
      const responses = await Promise.all(all);
      const leaders = responses.filter((response) => !isReplay(response));
      assert.equal(leaders.length, 1, "exactly one is not a replay");
      const [leader] = leaders;
      for (const response of responses) if (leader !== undefined) assertSameAnswer(leader, response);
      assert.equal(runs(), 1);
    },
  },
  {
    name: "repeats of other keys do not wait for this one",
    why: "a slow operation must not hold up the service",
    async run(context) {
      const { server, runs, answer } = await serveHeld(context, { onInFlight: { waitMs: 10_000 } });
      const first = server.send(post("/orders", "k1"));
      const waiter = server.send(post("/orders", "k1"));
      await until(() => runs() === 1, "the first request runs");
      const other = server.send(post("/orders", "k2"));
      await until(() => runs() === 2, "the other key runs");
      answer(2, json(2));
      assertExecuted(await other, 200);
      answer(1, json(1));
      assertReplay(await first, await waiter);
    },
  },
  {
    name: "when the first attempt fails one waiter takes over",
    why: "all at once would be a herd; none would be a timeout for all",
    async run(context) {
      const { server, runs, answer } = await serveHeld(context, { onInFlight: { waitMs: 10_000 } });
      const first = server.send(post("/orders", "k1"));
      await until(() => runs() === 1, "the first request runs");
      const waiters = Array.from({ length: 5 }, () => server.send(post("/orders", "k1")));
      await delay(50);
      answer(1, json({ error: "no" }, 500));
      assertExecuted(await first, 500);
      await until(() => runs() === 2, "a waiter takes over");
      await delay(50);
      assert.equal(runs(), 2, "more than one waiter took over");
      answer(2, json({ ok: true }, 201));
      const responses = await Promise.all(waiters);
      assert.equal(responses.filter((response) => !isReplay(response)).length, 1);
      for (const { status } of responses) assert.equal(status, 201);
      assert.equal(runs(), 2);
    },
  },
  {
    name: "with onReleased refuse all waiters are told that the attempt failed",
    why: "work that should not be tried again at once; a failed attempt's own answer is only its own caller's",
    async run(context) {
      const { server, runs, answer } = await serveHeld(context, {
        onInFlight: { waitMs: 10_000, onReleased: "refuse" },
      });
      const first = server.send(post("/orders", "k1"));
      await until(() => runs() === 1, "the first request runs");
      const waiters = Array.from({ length: 3 }, () => server.send(post("/orders", "k1")));
      await delay(300);
      answer(1, failure(undefined));
      assert.ok((await first).status >= 500);
      for (const response of await Promise.all(waiters)) assertRefused(response, "ATTEMPT_FAILED");
      assert.equal(runs(), 1);
    },
  },
  {
    name: "a waiter that leaves does not take over",
    why: "work for a client that is not there any more is work that nobody asked for",
    async run(context) {
      const { server, runs, answer } = await serveHeld(context, { onInFlight: { waitMs: 10_000 } });
      const first = server.send(post("/orders", "k1"));
      await until(() => runs() === 1, "the first request runs");
      const leaver = server.open(post("/orders", "k1"));
      leaver.response.catch(() => undefined);
      await delay(200);
      leaver.disconnect();
      await delay(300);
      answer(1, json({}, 503));
      await first;
      await delay(150);
      assert.equal(runs(), 1);
    },
  },
  {
    name: "more waiters than allowed are refused",
    why: "every queue has a bound",
    async run(context) {
      const { runs, open, handle } = heldWork(() => json(1));
      const server = await context.serve(
        {
          path: "/orders",
          protect: { onInFlight: { waitMs: 10_000 } },
          handle,
        },
        { limits: { maxWaitersPerKey: 2 } },
      );
      const first = server.send(post("/orders", "k1"));
      await until(() => runs.count === 1, "the first request runs");
      let refused = 0;
      const more = Array.from({ length: 5 }, async () => {
        const response = await server.send(post("/orders", "k1"));
        if (response.status === 409) refused++;
        return response;
      });
      for (const one of more) one.catch(() => undefined);
      await until(() => refused === 3, "what does not fit is refused at once");
      open();
      await first;
      const statuses = (await Promise.all(more)).map(({ status }) => status).toSorted((a, b) => a - b);
      assert.deepEqual(statuses, [200, 200, 409, 409, 409]);
    },
  },
];
