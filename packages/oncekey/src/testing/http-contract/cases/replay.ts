/**
 * @module
 * A repeat gets the first answer again, as it was.
 */
import assert from "node:assert/strict";
import {
  assertExecuted,
  assertRefused,
  assertReplay,
  counter,
  delay,
  fieldValue,
  fieldValues,
  type HttpCase,
  post,
} from "../case.js";
import type { HttpContractContext } from "../context.js";
import type { HeaderLine } from "../raw-message.js";
import { bytes, json, type Reply } from "../route.js";

/** The reply is given once and repeated once: one run, and the same answer. */
async function repeats(context: HttpContractContext, reply: (run: number) => Reply): Promise<void> {
  const runs = counter();
  const server = await context.serve({ path: "/orders", handle: () => reply(++runs.count) });
  const first = await server.send(post("/orders", "k1"));
  const again = await server.send(post("/orders", "k1"));
  assertReplay(first, again);
  assert.equal(runs.count, 1);
}

const every = Uint8Array.from({ length: 256 }, (_, byte) => byte);

const statuses = [200, 201, 202, 206, 226, 300, 400, 402, 403, 404, 409, 410, 418, 422, 451];

export const replayCases: readonly HttpCase[] = [
  {
    name: "a repeat gets status, headers and body of the first answer",
    why: "the client that lost the answer has to learn what it would have learned",
    async run(context) {
      const headers: HeaderLine[] = [
        ["Location", "/orders/1"],
        ["ETag", '"v1"'],
        ["X-Order-State", "paid"],
      ];
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        handle: () => json({ run: ++runs.count, text: "naïve ☃" }, 201, headers),
      });
      const first = await server.send(post("/orders", "k1"));
      assertExecuted(first, 201);
      for (const [name, value] of headers) assert.deepEqual(fieldValues(first, name), [value]);
      assert.deepEqual(JSON.parse(first.body.toString()), { run: 1, text: "naïve ☃" });
      assertReplay(first, await server.send(post("/orders", "k1")));
      assertReplay(first, await server.send(post("/orders", "k1")));
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "a binary body is replayed byte for byte",
    why: "a body that passed through text loses what is not UTF-8",
    run: (context) => repeats(context, () => bytes(every)),
  },
  {
    name: "a body of a megabyte is replayed byte for byte",
    why: "large bodies pass in many chunks",
    run: (context) =>
      repeats(context, () => bytes(Uint8Array.from({ length: 1_000_000 }, (_, index) => (index * 7) % 251))),
  },
  {
    name: "204 without a body is an answer",
    why: "no body is not the same as no record",
    run: (context) => repeats(context, () => ({ kind: "empty", status: 204, headers: [["X-Done", "yes"]] })),
  },
  {
    name: "an empty body is an answer",
    why: "an empty body is not the same as no record, or as a body that was not retained",
    run: (context) => repeats(context, () => bytes(new Uint8Array(0))),
  },
  ...[0, false, null, ""].map(
    (value): HttpCase => ({
      name: `the JSON value ${JSON.stringify(value)} is an answer`,
      why: "a falsy result is a result",
      run: (context) => repeats(context, () => json(value)),
    }),
  ),
  {
    name: "a redirect is replayed with its Location",
    why: "after POST, redirect, GET a client that retries has to land on the same page",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        handle: () => ({ kind: "redirect", status: 303, location: `/orders/${++runs.count}` }),
      });
      const first = await server.send(post("/orders", "k1"));
      assert.equal(fieldValue(first, "location"), "/orders/1");
      assertReplay(first, await server.send(post("/orders", "k1")));
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "every final status that speaks of the work is kept",
    why: "a 4xx that depends on the request is as final as a 2xx",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/status/:status",
        handle: ({ body }) => json({ run: ++runs.count }, (body as { status: number }).status),
      });
      for (const status of statuses) {
        const request = post(`/status/${status}`, `k${status}`, { status });
        const first = await server.send(request);
        assertExecuted(first, status);
        assertReplay(first, await server.send(request));
      }
      assert.equal(runs.count, statuses.length);
    },
  },
  {
    name: "with onCompleted reject a repeat is told that the work is done",
    why: "some services must not show a first answer again, but must not run again either",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        protect: { onCompleted: "reject" },
        handle: () => json(++runs.count, 201),
      });
      assertExecuted(await server.send(post("/orders", "k1")), 201);
      assertRefused(await server.send(post("/orders", "k1")), "ALREADY_COMPLETED");
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "after its retention a key is new",
    why: "a record that never ends is a leak",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        protect: { retentionMs: 50 },
        handle: () => json(++runs.count),
      });
      assertExecuted(await server.send(post("/orders", "k1")), 200);
      await delay(80);
      assertExecuted(await server.send(post("/orders", "k1")), 200);
      assert.equal(runs.count, 2);
      assert.equal(server.calls("complete").length, 2);
    },
  },
  {
    name: "keys do not meet",
    why: "one key, one effect: another key is another effect",
    async run(context) {
      const runs = counter();
      const server = await context.serve({ path: "/orders", handle: () => json(++runs.count) });
      for (const key of ["k1", "k2", "K1", "k1-", "k:1"]) {
        const first = await server.send(post("/orders", key));
        assertReplay(first, await server.send(post("/orders", key)));
      }
      assert.equal(runs.count, 5);
    },
  },
];
