/**
 * @module
 * What is the same request, and what is another one under the same key.
 */
import assert from "node:assert/strict";
import {
  assertExecuted,
  assertRefused,
  assertReplay,
  counter,
  type HttpCase,
  heldWork,
  post,
  until,
} from "../case.js";
import type { ContractServer, HttpContractContext } from "../context.js";
import type { RawRequest } from "../raw-message.js";
import { type CommonOptions, type ContractRoute, json, type Parses } from "../route.js";

interface Compared {
  readonly server: ContractServer;
  readonly runs: { count: number };
}

async function serveOrders(
  context: HttpContractContext,
  parses: Parses,
  protect: CommonOptions = {},
): Promise<Compared> {
  const runs = counter();
  const server = await context.serve({
    path: "/orders",
    parses,
    protect,
    handle: () => json({ run: ++runs.count }, 201),
  });
  return { server, runs };
}

function raw(type: string, body: string | Uint8Array, key = "k1"): RawRequest {
  return {
    method: "POST",
    path: "/orders",
    headers: [
      ["Content-Type", type],
      ["Idempotency-Key", key],
    ],
    body,
  };
}

function multipart(boundary: string, file: Uint8Array, amount = "10"): RawRequest {
  const part = (head: string, body: Uint8Array): Buffer =>
    Buffer.concat([
      Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n`),
      body,
      Buffer.from("\r\n"),
    ]);
  const body = Buffer.concat([
    part('name="amount"', Buffer.from(amount)),
    part('name="file"; filename="a.bin"\r\nContent-Type: application/octet-stream', file),
    Buffer.from(`--${boundary}--\r\n`),
  ]);
  return raw(`multipart/form-data; boundary=${boundary}`, body);
}

/** The first of `same` runs, the others are the same request, `other` is not and changes nothing. */
function tells(
  name: string,
  why: string,
  parses: Parses,
  same: readonly RawRequest[],
  other: readonly RawRequest[],
  protect: CommonOptions = {},
): HttpCase {
  return {
    name,
    why,
    async run(context) {
      const { server, runs } = await serveOrders(context, parses, protect);
      const [original, ...others] = same;
      assert.ok(original !== undefined);
      const first = await server.send(original);
      assertExecuted(first, 201);
      for (const request of others) assertReplay(first, await server.send(request));
      for (const request of other) assertRefused(await server.send(request), "KEY_REUSED");
      assertReplay(first, await server.send(original));
      assert.equal(runs.count, 1);
    },
  };
}

const JSON_TYPE = "application/json";
const FORM_TYPE = "application/x-www-form-urlencoded";

export const fingerprintCases: readonly HttpCase[] = [
  tells(
    "another body under the same key is refused, and the record stays",
    "draft §2.7: 422 if the key is used for another request",
    "json",
    [raw(JSON_TYPE, '{"amount":10}')],
    [
      raw(JSON_TYPE, '{"amount":11}'),
      raw(JSON_TYPE, '{"amount":"10"}'),
      raw(JSON_TYPE, "{}"),
      raw(JSON_TYPE, "[10]"),
    ],
  ),
  tells(
    "JSON that is only spelled differently is the same request",
    "a client that builds its body anew may order members differently",
    "json",
    [
      raw(JSON_TYPE, '{"a":1,"b":[{"c":"é","d":null}]}'),
      raw(JSON_TYPE, '{ "b" : [ {"d":null,"c":"\\u00e9"} ],\n"a":1.0 }'),
    ],
    [raw(JSON_TYPE, '{"a":1,"b":[{"c":"e","d":null}]}'), raw(JSON_TYPE, '{"a":1,"b":[{"c":"é"}]}')],
  ),
  tells(
    "the order of elements counts",
    "a JSON array is a sequence",
    "json",
    [raw(JSON_TYPE, "[1,2]")],
    [raw(JSON_TYPE, "[2,1]")],
  ),
  tells(
    "whole numbers beyond a double are told apart",
    "two account numbers that are one as a double are two accounts; a parser before the protection loses them",
    "json",
    [raw(JSON_TYPE, '{"account":12345678901234567890}')],
    [raw(JSON_TYPE, '{"account":12345678901234567891}')],
  ),
  tells(
    "multipart parts under a new boundary are the same request",
    "every form library makes a new boundary for each attempt",
    "nothing",
    [multipart("b1", Uint8Array.of(0xff, 1)), multipart("----other", Uint8Array.of(0xff, 1))],
    [multipart("b1", Uint8Array.of(0xfe, 1)), multipart("b1", Uint8Array.of(0xff, 1), "11")],
  ),
  tells(
    "a form counts by its fields",
    "the spelling of a space, or the order of different fields, is the library's choice",
    "nothing",
    [raw(FORM_TYPE, "amount=10&to=Ada+L"), raw(FORM_TYPE, "to=Ada%20L&amount=10")],
    [raw(FORM_TYPE, "amount=11&to=Ada+L"), raw(FORM_TYPE, "amount=10&to=Ada+L&to=Bob")],
  ),
  tells(
    "bodies that differ in one byte are two requests",
    "bytes that are not UTF-8 all become U+FFFD as text",
    "bytes",
    [raw("application/octet-stream", Uint8Array.of(0xff, 1))],
    [
      raw("application/octet-stream", Uint8Array.of(0xfe, 1)),
      raw("application/octet-stream", Uint8Array.of(0xff)),
    ],
  ),
  tells(
    "with fingerprint off the key alone counts",
    "some clients repeat with a time stamp in the body",
    "json",
    [raw(JSON_TYPE, '{"amount":10}'), raw(JSON_TYPE, '{"amount":11}')],
    [],
    { fingerprint: "off" },
  ),
  tells(
    "with selected fields only those count",
    "a retry that stamps the time is the same request; another amount is not",
    "json",
    [raw(JSON_TYPE, '{"amount":10,"at":1}'), raw(JSON_TYPE, '{"amount":10,"at":2}')],
    [raw(JSON_TYPE, '{"amount":11,"at":1}')],
    { fingerprint: { fields: ["/amount"] } },
  ),
  {
    name: "a handler that changes its input does not change the request",
    why: "the fingerprint is taken before the handler runs: an honest retry still replays",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/orders",
        handle: ({ body }) => {
          Object.assign(body as object, { amount: 99, id: ++runs.count });
          return json(body, 201);
        },
      });
      const first = await server.send(post("/orders", "k1"));
      assert.deepEqual(JSON.parse(first.body.toString()), { amount: 99, id: 1 });
      assertReplay(first, await server.send(post("/orders", "k1")));
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "the handler reads its body whole",
    why: "a layer that has read the body for its fingerprint has to give it back",
    async run(context) {
      const seen: unknown[] = [];
      const route = (parses: Parses): ContractRoute => ({
        path: `/${parses}`,
        parses,
        handle: ({ body }) => {
          seen.push(body);
          return json(1);
        },
      });
      const server = await context.serve([route("json"), route("bytes")]);
      const text = "x".repeat(200_000);
      await server.send(post("/json", "k1", { text }));
      const upload = Uint8Array.from({ length: 200_000 }, (_, index) => index % 256);
      await server.send({ ...raw("application/octet-stream", upload), path: "/bytes" });
      const chunked = `${(10).toString(16)}\r\n{"amount":\r\n3\r\n10}\r\n0\r\n\r\n`;
      const { headers = [] } = post("/json", "k2");
      await server.send({
        ...post("/json", "k2"),
        headers: [...headers, ["Transfer-Encoding", "chunked"]],
        body: chunked,
      });
      assert.deepEqual(seen[0], { text });
      assert.ok(Buffer.from(seen[1] as Uint8Array).equals(Buffer.from(upload)));
      assert.deepEqual(seen[2], { amount: 10 });
      assert.equal(server.calls("complete").length, 3);
    },
  },
  {
    name: "query and path belong to the request, the order of the query does not",
    why: "two transfers that differ in ?to= are not each other's repeats",
    async run(context) {
      const runs = counter();
      const server = await context.serve({
        path: "/pay/:account",
        handle: () => json({ run: ++runs.count }, 201),
      });
      const first = await server.send(post("/pay/1?to=bob&by=eve", "k1"));
      assertReplay(first, await server.send(post("/pay/1?by=eve&to=bob", "k1")));
      for (const path of ["/pay/1?to=eve&by=eve", "/pay/1", "/pay/2?to=bob&by=eve"]) {
        assertRefused(await server.send(post(path, "k1")), "KEY_REUSED");
      }
      assert.equal(runs.count, 1);
    },
  },
  {
    name: "routes, mounts and methods have keys of their own",
    why: "/a/create and /b/create are two operations, also for a router that only sees /create",
    async run(context) {
      const runs = counter();
      const handle = (): ReturnType<ContractRoute["handle"]> => json({ run: ++runs.count }, 201);
      const server = await context.serve([
        { path: "/create", mount: "/a", handle },
        { path: "/create", mount: "/b", handle },
        { path: "/create", mount: "/a", method: "PUT", handle },
      ]);
      const requests = [
        post("/a/create", "k1"),
        post("/b/create", "k1"),
        { ...post("/a/create", "k1"), method: "PUT" },
      ];
      for (const request of requests) assertReplay(await server.send(request), await server.send(request));
      assert.equal(runs.count, 3);
    },
  },
  {
    name: "another body is refused while the first is in flight",
    why: "a waiter must not be handed the answer to another question",
    async run(context) {
      const { runs, open, handle } = heldWork();
      const server = await context.serve({
        path: "/orders",
        handle,
      });
      const first = server.send(post("/orders", "k1"));
      await until(() => runs.count === 1, "the first request runs");
      assertRefused(await server.send(post("/orders", "k1", { amount: 11 })), "KEY_REUSED");
      open();
      assertReplay(await first, await server.send(post("/orders", "k1")));
    },
  },
  {
    name: "strange JSON has an answer",
    why: "deep nesting, lone surrogates, duplicate names: whatever a client sends, the server stays up and runs once",
    async run(context) {
      const { server } = await serveOrders(context, "nothing");
      const strange = [
        `${"[".repeat(50_000)}${"]".repeat(50_000)}`,
        '{"a":1,"a":2}',
        '{"a":"\\ud800"}',
        '{"a":-0,"b":1e400,"c":1e-400}',
        '{"__proto__":{"x":1},"constructor":1}',
        '{"a":',
        "",
        "\u0000",
      ];
      for (const [index, body] of strange.entries()) {
        const first = await server.send(raw(JSON_TYPE, body, `k${index}`));
        assertExecuted(first, 201);
        assertReplay(first, await server.send(raw(JSON_TYPE, body, `k${index}`)));
      }
    },
  },
];
