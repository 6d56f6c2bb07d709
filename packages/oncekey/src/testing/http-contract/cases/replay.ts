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
  isReplay,
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
    name: "header lines of one name stay several lines, in order",
    why: "joining lines breaks fields that are not lists",
    async run(context) {
      const headers: HeaderLine[] = [
        ["X-Part", "b"],
        ["X-Part", "a"],
        ["X-Part", "b, c"],
      ];
      const server = await context.serve({ path: "/orders", handle: () => json(1, 200, headers) });
      const first = await server.send(post("/orders", "k1"));
      assert.deepEqual(fieldValues(first, "x-part"), ["b", "a", "b, c"]);
      assertReplay(first, await server.send(post("/orders", "k1")));
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
    name: "only a replay is marked",
    why: "a client and its support have to be able to tell a first answer from a repeated one",
    async run(context) {
      const server = await context.serve({ path: "/orders", handle: () => json(1) });
      assert.equal(fieldValue(await server.send(post("/orders", "k1")), "idempotency-replayed"), undefined);
      assert.equal(fieldValue(await server.send(post("/orders", "k1")), "idempotency-replayed"), "true");
    },
  },
  {
    name: "a script of another origin may read the mark, and what the outer layers expose",
    why: "Fetch §3.3.4: a script sees no response header that Access-Control-Expose-Headers does not name",
    async run(context) {
      const server = await context.serve(
        { path: "/orders", handle: () => json(1) },
        { outerHeaders: () => [["Access-Control-Expose-Headers", "X-Total"]] },
      );
      const request = post("/orders", "k1", {}, [["Origin", "https://shop.example"]]);
      await server.send(request);
      const again = await server.send(request);
      assert.ok(isReplay(again));
      const exposed = fieldValues(again, "access-control-expose-headers").join(",").toLowerCase();
      for (const name of ["idempotency-replayed", "x-total"])
        assert.ok(exposed.includes(name), `exposed: ${exposed}`);
    },
  },
  {
    name: "a replay keeps neither cookies nor what belongs to one message or moment",
    why: "a stored session would be handed to whoever repeats; hop-by-hop fields end with their connection (RFC 9110 §7.6.1)",
    async run(context) {
      const once: HeaderLine[] = [
        ["Set-Cookie", "session=1; HttpOnly"],
        ["Set-Cookie", "theme=dark"],
        ["Server-Timing", "db;dur=53"],
        ["X-Request-Id", "r1"],
        ["traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
        ["RateLimit-Remaining", "7"],
        ["X-RateLimit-Remaining", "7"],
        ["Access-Control-Allow-Origin", "https://first.example"],
        ["Strict-Transport-Security", "max-age=1"],
        ["Content-Security-Policy", "default-src 'none'"],
        ["Proxy-Authenticate", "Basic"],
      ];
      const server = await context.serve({
        path: "/orders",
        handle: () => json(1, 201, [["X-Kept", "yes"], ...once]),
      });
      const first = await server.send(post("/orders", "k1"));
      assert.equal(fieldValues(first, "set-cookie").length, 2);
      const again = await server.send(post("/orders", "k1"));
      assert.ok(isReplay(again));
      assert.equal(fieldValue(again, "x-kept"), "yes");
      for (const [name] of once) assert.deepEqual(fieldValues(again, name), [], name);
    },
  },
  {
    name: "the headers of outer layers are those of today",
    why: "CORS of the first caller's origin would break the second caller's browser",
    async run(context) {
      const requests = counter();
      const server = await context.serve(
        { path: "/orders", handle: () => json(1, 200, [["X-Answer", "kept"]]) },
        {
          outerHeaders: () => {
            requests.count++;
            return [
              ["Access-Control-Allow-Origin", `https://caller${requests.count}.example`],
              ["X-Request-Id", `r${requests.count}`],
              ["RateLimit-Remaining", `${10 - requests.count}`],
              ["X-Outer", `${requests.count}`],
            ];
          },
        },
      );
      const first = await server.send(post("/orders", "k1"));
      assert.deepEqual(fieldValues(first, "x-outer"), ["1"]);
      const again = await server.send(post("/orders", "k1"));
      assert.ok(isReplay(again));
      assert.deepEqual(fieldValues(again, "x-answer"), ["kept"]);
      assert.deepEqual(fieldValues(again, "access-control-allow-origin"), ["https://caller2.example"]);
      assert.deepEqual(fieldValues(again, "x-request-id"), ["r2"]);
      assert.deepEqual(fieldValues(again, "ratelimit-remaining"), ["8"]);
      assert.deepEqual(fieldValues(again, "x-outer"), ["2"]);
    },
  },
  {
    name: "a replay has a Date of its own and a right length",
    why: "RFC 9110 §6.6.1: Date is when the message was made; a length of another message cuts or hangs",
    async run(context) {
      const server = await context.serve({ path: "/orders", handle: () => json({ text: "ä" }) });
      const first = await server.send(post("/orders", "k1"));
      await delay(1_100);
      const again = await server.send(post("/orders", "k1"));
      assert.ok(isReplay(again));
      assert.notEqual(fieldValue(again, "date"), fieldValue(first, "date"));
      const length = fieldValue(again, "content-length");
      assert.ok(length === undefined || Number(length) === again.body.length);
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
