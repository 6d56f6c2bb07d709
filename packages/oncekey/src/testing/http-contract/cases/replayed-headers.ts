/**
 * @module
 * Which headers a replay has: those of the first answer, of today's layers, and the mark.
 */
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import {
  assertReplay,
  counter,
  delay,
  fieldValue,
  fieldValues,
  type HttpCase,
  isReplay,
  post,
} from "../case.js";
import type { HeaderLine } from "../raw-message.js";
import { bytes, json } from "../route.js";

export const replayedHeaderCases: readonly HttpCase[] = [
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
    name: "a field that is named in Connection is not replayed",
    why: "RFC 9110 §7.6.1: such a field ends with its connection",
    async run(context) {
      const headers: HeaderLine[] = [
        ["Connection", "close, X-Hop"],
        ["X-Hop", "1"],
        ["X-Kept", "yes"],
      ];
      const server = await context.serve({ path: "/orders", handle: () => json(1, 200, headers) });
      await server.send(post("/orders", "k1"));
      const again = await server.send(post("/orders", "k1"));
      assert.ok(isReplay(again));
      assert.deepEqual(fieldValues(again, "x-kept"), ["yes"]);
      assert.deepEqual(fieldValues(again, "x-hop"), []);
    },
  },
  {
    name: "a compressed answer is replayed as the client can read it",
    why: "bytes of gzip without their Content-Encoding, or to a client that cannot undo it, are noise",
    async run(context) {
      const text = "receipt ".repeat(100);
      const headers: HeaderLine[] = [["Content-Encoding", "gzip"]];
      const server = await context.serve({ path: "/orders", handle: () => bytes(gzipSync(text), headers) });
      const reading = (coding: string) =>
        server.send(post("/orders", "k1", {}, [["Accept-Encoding", coding]]));
      const first = await reading("gzip");
      assertReplay(first, await reading("br, gzip"));
      const plain = await reading("identity");
      assert.ok(isReplay(plain));
      assert.deepEqual(fieldValues(plain, "content-encoding"), []);
      assert.equal(plain.body.toString(), text);
      assert.match(fieldValues(plain, "vary").join(","), /accept-encoding/i);
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
];
