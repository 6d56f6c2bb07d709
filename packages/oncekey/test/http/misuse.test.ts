import express, { type ErrorRequestHandler } from "express";
import Fastify from "fastify";
import { createIdempotency, isOncekeyError } from "oncekey";
import { idempotent as forExpress } from "oncekey/http/express";
import { idempotent as forFastify } from "oncekey/http/fastify";
import { idempotent as forFetch } from "oncekey/http/fetch";
import { idempotent as forHono } from "oncekey/http/hono";
import { idempotent as forNode } from "oncekey/http/node";
import { memoryStore } from "oncekey/stores/memory";
import { describe, expect, it } from "vitest";
import { listen } from "./raw-http.js";

/** As JavaScript calls it. */
type Loose = (...given: unknown[]) => unknown;

const store = memoryStore();
const idempotency = createIdempotency({ store, scope: "global" });
const options = { operation: "op" };
const handler = () => new Response("done");

const adapters: [string, Loose][] = [
  ["express", forExpress as Loose],
  ["fastify", forFastify as Loose],
  ["fetch", forFetch as Loose],
  ["hono", forHono as Loose],
  ["node", forNode as Loose],
];
const RIGHT_CALL = /createIdempotency\(\{ store \}\).*idempotent\(idempotency, \{ scope \}\)/;

function refusalOf(call: () => unknown): { readonly message: string } {
  try {
    call();
  } catch (error) {
    if (isOncekeyError(error, "CONFIGURATION_INVALID")) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

describe.each(adapters)("idempotent of %s, called with something else first", (_, idempotent) => {
  it.each<[string, unknown[]]>([
    ["nothing", []],
    ["its options", [{ scope: "global" }]],
    ["its options and a handler", [{ scope: "global" }, handler]],
    ["a store", [store, options, handler]],
    ["null", [null, options, handler]],
    ["a promise of the instance", [Promise.resolve(idempotency), options, handler]],
  ])("that is %s, shows the right call", (_what, given) => {
    expect(refusalOf(() => idempotent(...given)).message).toMatch(RIGHT_CALL);
  });
});

describe.each([
  ["fetch", forFetch as Loose],
  ["node", forNode as Loose],
])("idempotent of %s", (_, idempotent) => {
  it.each<[string, unknown[]]>([
    ["without a handler", [idempotency, options]],
    ["with its handler in the place of the options", [idempotency, handler]],
    ["with an answer for a handler", [idempotency, options, new Response("done")]],
  ])("%s shows the right call", (_what, given) => {
    expect(refusalOf(() => idempotent(...given)).message).toContain(
      "idempotent(idempotency, { scope }, handler)",
    );
  });
});

describe("idempotent given to a framework without being called", () => {
  it("is told by Express with the first request", async () => {
    const errors: unknown[] = [];
    const app = express();
    const last: ErrorRequestHandler = (error, _req, res, _next) => {
      errors.push(error);
      res.sendStatus(500);
    };
    app.post("/orders", forExpress as never, (_req, res) => void res.send("done"));
    app.use(last);
    const { port } = await listen(app);
    expect((await fetch(`http://127.0.0.1:${port}/orders`, { method: "POST" })).status).toBe(500);
    expect(errors).toMatchObject([
      { code: "CONFIGURATION_INVALID", message: expect.stringMatching(RIGHT_CALL) },
    ]);
  });

  it("is told by Fastify, which ends with what a plugin throws", () => {
    const call = () => (forFastify as Loose)(Fastify(), { scope: "global" }, () => undefined);
    expect(refusalOf(call).message).toMatch(RIGHT_CALL);
  });
});

describe("a fetch handler that returns no Response", () => {
  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["data", { id: 1 }],
    ["a text", "done"],
  ])("but %s, is told so, and its key is free", async (_, returned) => {
    const given = [returned, new Response("done")];
    const POST = forFetch(idempotency, options, (() => given.shift()) as typeof handler);
    const headers = { "Idempotency-Key": `misuse-${typeof returned}-${String(returned === null)}` };
    const send = () => POST(new Request("http://shop.example/", { method: "POST", headers }));
    await expect(send()).rejects.toMatchObject({
      code: "CONFIGURATION_INVALID",
      message: expect.stringContaining("must return a Response"),
    });
    expect(await (await send()).text()).toBe("done");
  });
});
