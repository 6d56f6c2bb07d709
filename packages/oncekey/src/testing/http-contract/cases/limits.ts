/**
 * @module
 * What is too large to be compared, and what is too large to be kept.
 */
import assert from "node:assert/strict";
import {
  assertExecuted,
  assertRefused,
  counter,
  fieldValue,
  fieldValues,
  type HttpCase,
  isReplay,
  post,
} from "../case.js";
import { bytes, json } from "../route.js";

export const limitCases: readonly HttpCase[] = [
  {
    name: "a result that is too large goes to its caller whole, and its repeat learns that it is done",
    why: "the work must not run again because its answer is long",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        protect: { maxResultBytes: 1_000 },
        handle: () => {
          runs.count++;
          return json({ text: "x".repeat(2_000) }, 201, [
            ["Location", "/orders/1"],
            ["ETag", '"v1"'],
            ["X-Other", "gone with the body"],
          ]);
        },
      });
      const first = await server.send(post("/orders", "k1"));
      assertExecuted(first, 201);
      assert.equal(first.body.length, 2_011);
      for (const _ of [1, 2]) {
        const again = await server.send(post("/orders", "k1"));
        assert.equal(again.status, 201);
        assert.ok(isReplay(again));
        assert.equal(again.body.length, 0);
        assert.equal(fieldValue(again, "idempotency-body"), "not-retained");
        assert.equal(fieldValue(again, "location"), "/orders/1");
        assert.equal(fieldValue(again, "etag"), '"v1"');
        assert.deepEqual(fieldValues(again, "content-type"), [], "the type of a body that is not there");
      }
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "a result of exactly the allowed size is kept",
    why: "a bound holds to the byte",
    async run(context) {
      const server = await context.serve({
        path: "/orders",
        protect: { maxResultBytes: 1_000 },
        handle: ({ body }) => bytes(new Uint8Array((body as { size: number }).size)),
      });
      for (const [size, kept] of [
        [1_000, 1_000],
        [1_001, 0],
      ] as const) {
        await server.send(post("/orders", `k${size}`, { size }));
        const again = await server.send(post("/orders", `k${size}`, { size }));
        assert.ok(isReplay(again));
        assert.equal(again.body.length, kept);
      }
    },
  },
  {
    name: "with onTombstone refuse a repeat is told that the answer is gone",
    why: "a client that takes an empty answer for a whole one is better refused",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        protect: { maxResultBytes: 10, onTombstone: "refuse" },
        handle: () => json({ run: ++runs.count, text: "x".repeat(20) }, 201),
      });
      assertExecuted(await server.send(post("/orders", "k1")), 201);
      const problem = assertRefused(await server.send(post("/orders", "k1")), "RESULT_NOT_RETAINED");
      assert.equal((problem as { completed?: unknown }).completed, true);
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "a request that is too large to be compared is refused",
    why: "what cannot be compared could be another request under the same key",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        protect: { maxRequestBytes: 1_000 },
        handle: () => json(++runs.count),
      });
      assertRefused(
        await server.send(post("/orders", "k1", { text: "x".repeat(2_000) })),
        "REQUEST_TOO_LARGE",
      );
      assert.equal(runs.count, 0);
      assert.equal(server.calls().length, 0, "the store was asked");
      assertExecuted(await server.send(post("/orders", "k1", { text: "x" })), 200);
    },
  },
  {
    name: "a chunked request that turns out too large is refused",
    why: "a length that is not declared is no reason to read without end",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        protect: { maxRequestBytes: 1_000 },
        handle: () => json(++runs.count),
      });
      const text = JSON.stringify("x".repeat(2_000));
      const { headers = [] } = post("/orders", "k1");
      const response = await server.send({
        ...post("/orders", "k1"),
        headers: [...headers, ["Transfer-Encoding", "chunked"]],
        body: `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`,
      });
      assertRefused(response, "REQUEST_TOO_LARGE");
      assert.equal(runs.count, 0);
    },
  },
  {
    name: "with onRequestTooLarge skip-body a large request runs once and reaches its handler whole",
    why: "an upload that is named by its key alone",
    async run(context) {
      const sizes: number[] = [];
      const server = await context.serve({
        path: "/orders",
        parses: "bytes",
        protect: { maxRequestBytes: 1_000, onRequestTooLarge: "skip-body" },
        handle: ({ body }) => json(sizes.push((body as Uint8Array).length)),
      });
      const upload = {
        method: "POST",
        path: "/orders",
        headers: [
          ["Content-Type", "application/octet-stream"],
          ["Idempotency-Key", "k1"],
        ],
        body: new Uint8Array(100_000),
      } as const;
      assertExecuted(await server.send(upload), 200);
      assert.ok(isReplay(await server.send(upload)));
      assert.deepEqual(sizes, [100_000]);
    },
  },
];
