/**
 * @module
 * How a refusal reads: RFC 9457, in any language, or as the service wants it.
 */
import assert from "node:assert/strict";
import { assertRefused, describe, fieldValue, fieldValues, type HttpCase, post } from "../case.js";
import { json } from "../route.js";

const handle = () => json(1);

export const refusalCases: readonly HttpCase[] = [
  {
    name: "a refusal is a problem document",
    why: "RFC 9457 §3 and §4; draft §2.7 asks for a link to the documentation",
    async run(context) {
      const server = await context.serve({ path: "/orders", handle });
      const response = await server.send(post("/orders", undefined));
      const problem = assertRefused(response, "KEY_MISSING");
      assert.ok(URL.canParse(problem.type), `type is no URI: ${problem.type}`);
      for (const text of [problem.title, problem.detail])
        assert.ok(typeof text === "string" && text.length > 0);
      const [link = ""] = fieldValues(response, "link");
      assert.match(link, /^<[^>]+>; rel="?\w+/);
      assert.match(
        fieldValue(response, "cache-control") ?? "",
        /no-store/,
        "a refusal may be stored on the way",
      );
      assert.equal(Number(fieldValue(response, "content-length")), response.body.length);
    },
  },
  {
    name: "texts of refusals may be in any language",
    why: "the people who read them are the route's users; codes and types stay",
    async run(context) {
      const detail = "Für diese Zahlung fehlt der Schlüssel ☃";
      const server = await context.serve({
        path: "/orders",
        protect: { messages: { KEY_MISSING: { title: "鍵がありません", detail } } },
        handle,
      });
      const problem = assertRefused(await server.send(post("/orders", undefined)), "KEY_MISSING");
      assert.equal(problem.detail, detail);
      assert.equal(problem.title, "鍵がありません");
      assertRefused(await server.send(post("/orders", "a b")), "KEY_INVALID");
    },
  },
  {
    name: "the documentation and the challenge may be the service's own",
    why: "RFC 8288; RFC 9110 §11.6.1",
    async run(context) {
      const server = await context.serve({
        path: "/orders",
        scope: "caller",
        protect: { docs: "https://api.example/idempotency", challenge: 'Basic realm="shop"' },
        handle,
      });
      const response = await server.send(post("/orders", "k1"));
      assertRefused(response, "SCOPE_MISSING");
      assert.deepEqual(fieldValues(response, "www-authenticate"), ['Basic realm="shop"']);
      assert.ok(
        fieldValues(response, "link").some((link) => link.startsWith("<https://api.example/idempotency>")),
      );
    },
  },
  {
    name: "the renderer of refusals may be replaced",
    why: "a service with an error format of its own keeps it",
    async run(context) {
      const server = await context.serve({
        path: "/orders",
        protect: {
          renderRefusal: ({ code, status }) => ({
            status: status === 400 ? 418 : status,
            headers: [
              ["Content-Type", "text/x-error"],
              ["X-Code", code],
            ],
            body: Buffer.from(`<${code}> ☃`),
          }),
        },
        handle,
      });
      const response = await server.send(post("/orders", undefined));
      assert.equal(response.status, 418, describe(response));
      assert.deepEqual(fieldValues(response, "content-type"), ["text/x-error"]);
      assert.deepEqual(fieldValues(response, "x-code"), ["KEY_MISSING"]);
      assert.equal(response.body.toString(), "<KEY_MISSING> ☃");
    },
  },
  {
    name: "a refusal reaches a client that is still sending",
    why: "a connection that is closed on unread bytes is reset, and the client never sees why",
    async run(context) {
      const server = await context.serve({ path: "/orders", protect: { maxRequestBytes: 1_000 }, handle });
      const upload = { text: "x".repeat(5_000_000) };
      assertRefused(await server.send(post("/orders", undefined, upload)), "KEY_MISSING");
      assertRefused(await server.send(post("/orders", "k1", upload)), "REQUEST_TOO_LARGE");
    },
  },
  {
    name: "a refusal has the headers of outer layers",
    why: "a browser that lacks the CORS headers shows its script no error at all",
    async run(context) {
      const server = await context.serve(
        { path: "/orders", handle },
        { outerHeaders: () => [["Access-Control-Allow-Origin", "https://shop.example"]] },
      );
      const response = await server.send(post("/orders", undefined));
      assertRefused(response, "KEY_MISSING");
      assert.deepEqual(fieldValues(response, "access-control-allow-origin"), ["https://shop.example"]);
    },
  },
];
