import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { type Context, type Handler, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { stream, streamSSE, streamText } from "hono/streaming";
import { createIdempotency } from "oncekey";
import { idempotent } from "oncekey/http/hono";
import { memoryStore } from "oncekey/stores/memory";
import { exchange, type RawResponse } from "oncekey/testing";
import { describe, expect, it, onTestFinished } from "vitest";

/** A server of Node with one protected route, asked over a raw socket. */
async function served(handler: Handler) {
  const idempotency = createIdempotency({ store: memoryStore(), scope: "global" });
  const app = new Hono();
  app.onError((error, c) => (error instanceof HTTPException ? error.getResponse() : c.text("broken", 500)));
  let runs = 0;
  app.post("/orders", idempotent(idempotency), (c, next) => {
    runs++;
    return handler(c, next);
  });
  const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const request = { method: "POST", path: "/orders", headers: [["Idempotency-Key", "k1"]] } as const;
  return { ask: () => exchange(port, request).response, runs: () => runs };
}

const valuesOf = ({ headers }: RawResponse, name: string): string[] =>
  headers.filter(([spelled]) => spelled.toLowerCase() === name).map(([, value]) => value);

const seen = (response: RawResponse) => ({
  status: response.status,
  body: response.body.toString(),
  kept: valuesOf(response, "x-kept"),
  replayed: valuesOf(response, "idempotency-replayed"),
});

describe("an answer of Hono", () => {
  it.each<[string, Handler]>([
    ["of its error with a status", () => Promise.reject(new HTTPException(422, { message: "out of stock" }))],
    [
      "of its error with a response",
      () => {
        throw new HTTPException(409, {
          res: new Response("held", { status: 409, headers: { "X-Kept": "1" } }),
        });
      },
    ],
    ["that is not found", (c) => c.notFound()],
    ["without a body", (c) => c.body(null, 204, { "X-Kept": "1" })],
    [
      "that a layer below has replaced",
      async (c, next) => {
        await next();
        c.res = new Response("replaced", { status: 201 });
      },
    ],
    [
      "in parts",
      (c) =>
        stream(c, async (out) => {
          await out.write("one, ");
          await out.sleep(5);
          await out.write("two");
        }),
    ],
    ["of text in parts", (c) => streamText(c, async (out) => void (await out.write("one")))],
    ["of events", (c) => streamSSE(c as Context, async (out) => out.writeSSE({ data: "1" }))],
  ])("%s is whole for its client and for its repeat", async (_, handler) => {
    const { ask, runs } = await served(handler);
    const [first, again] = [await ask(), await ask()];
    expect(first.complete).toBe(true);
    expect(seen(again)).toEqual({ ...seen(first), replayed: ["true"] });
    expect(seen(first).replayed).toEqual([]);
    // RFC 9112 §6.2: a length does not stand beside a coding of transfer.
    for (const answer of [first, again])
      expect(
        [...valuesOf(answer, "content-length"), ...valuesOf(answer, "transfer-encoding")].length,
      ).toBeLessThan(2);
    expect(runs()).toBe(1);
  });

  it.each<[string, Handler]>([
    ["is an error that was thrown", () => Promise.reject(new Error("the provider is down"))],
    ["was made and not returned", (c) => void c.json({ ok: true })],
    ["is none", () => undefined as never],
    [
      "has been read",
      async () => {
        const read = new Response("a");
        await read.text();
        return read;
      },
    ],
  ])("that %s frees the key", async (_, handler) => {
    const { ask, runs } = await served(handler);
    const answers = [await ask(), await ask()];
    expect(answers.map(({ status }) => status)).toEqual([500, 500]);
    expect(runs()).toBe(2);
  });
});
