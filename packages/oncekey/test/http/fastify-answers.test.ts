import { once } from "node:events";
import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { notPerformed } from "oncekey";
import { exchange } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { closeAll, create, newKey, type Sent, send, serve } from "./fastify-app.js";

closeAll();

/** The first answer, and what its repeat gets. */
async function expectTwice(app: FastifyInstance, answer: Partial<Sent>): Promise<void> {
  const key = newKey();
  for (const replay of [false, true]) expect(await send(app, key)).toMatchObject({ ...answer, replay });
}

describe("an answer", () => {
  it("is a Response, with its status and headers", async () => {
    const app = await create();
    app.post("/orders", () => new Response("made", { status: 201, headers: { Location: "/orders/1" } }));
    await expectTwice(app, {
      status: 201,
      body: "made",
      headers: { location: "/orders/1" },
    });
  });

  it.each<[string, () => unknown]>([
    ["Node's", () => Readable.from(["a", "b"])],
    ["the web's", () => new Response(new Blob(["ab"])).body],
  ])("is a stream of %s", async (_, stream) => {
    const app = await create();
    app.post("/orders", (_request, reply) => reply.send(stream()));
    const key = newKey();
    for (const replay of [false, true]) {
      const answer = await send(app, key);
      expect(answer).toMatchObject({ status: 200, body: "ab", replay });
      expect(answer.headers["content-type"]).toBeUndefined();
    }
  });

  it("is that of the error handler for a stream that fails before its first byte", async () => {
    let count = 0;
    const app = await create();
    app.setErrorHandler((error: NodeJS.ErrnoException, _request, reply) => {
      count += 1;
      reply.code(error.code === "ENOENT" ? 404 : 500).send({ error: error.code });
    });
    app.post("/orders", (_request, reply) => reply.send(createReadStream("/no/such/file")));
    await expectTwice(app, { status: 404, body: '{"error":"ENOENT"}' });
    expect(count).toBe(1);
  });

  it("has the same bytes in a header beyond ASCII, first and replayed", async () => {
    const value = "caf\u00e9; name=\u00ff\u0080";
    const app = await create();
    app.post("/orders", (_request, reply) => reply.header("x-name", value).send({ ok: true }));
    const port = await serve(app);
    const headers = { "idempotency-key": newKey() };
    for (const replayed of [null, "true"]) {
      const answer = await fetch(`http://127.0.0.1:${port}/orders`, { method: "POST", headers });
      expect([answer.headers.get("x-name"), await answer.text()]).toEqual([value, '{"ok":true}']);
      expect(answer.headers.get("idempotency-replayed")).toBe(replayed);
    }
  });

  it("may be sent without being returned", async () => {
    const app = await create();
    app.post("/orders", async (_request, reply) => {
      reply.code(201).header("x-part", "1").send({ ok: true });
    });
    await expectTwice(app, {
      status: 201,
      body: '{"ok":true}',
      headers: { "x-part": "1" },
    });
  });

  it("is not altered by an error that comes later", async () => {
    const app = await create();
    app.setErrorHandler((_error, _request, reply) => reply.code(500).header("x-part", "error").send("error"));
    app.post("/orders", async (_request, reply) => {
      reply.code(201).header("x-part", "answer").send({ ok: true });
      throw new Error("late");
    });
    await expectTwice(app, {
      status: 201,
      body: '{"ok":true}',
      headers: { "x-part": "answer" },
    });
  });

  it("may be written to a hijacked reply", async () => {
    const app = await create();
    app.post("/orders", (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(201, { "X-Raw": "1" });
      reply.raw.end("raw");
    });
    const port = await serve(app);
    const headers = { "idempotency-key": newKey() };
    for (const replayed of [null, "true"]) {
      const answer = await fetch(`http://127.0.0.1:${port}/orders`, { method: "POST", headers });
      expect([answer.status, answer.headers.get("x-raw"), await answer.text()]).toEqual([201, "1", "raw"]);
      expect(answer.headers.get("idempotency-replayed")).toBe(replayed);
    }
  });

  it("leaves its status behind if it was written past Fastify", async () => {
    const app = await create();
    app.post("/orders", async (_request, reply) => {
      reply.raw.writeHead(201);
      reply.raw.end("raw");
      await once(reply.raw, "finish");
    });
    const key = newKey();
    expect(await send(app, key)).toMatchObject({ status: 201, body: "raw" });
    expect(await send(app, key)).toMatchObject({
      status: 201,
      body: "",
      headers: { "idempotency-body": "not-retained" },
    });
  });

  it("frees the key at most once, too, if it was made of the word that nothing has happened", async () => {
    let count = 0;
    const app = await create();
    const config = { idempotency: { guarantee: "at-most-once", acceptsLostWrites: true } } as const;
    app.post("/orders", { config }, () => {
      count += 1;
      if (count === 1) throw notPerformed("the network refused");
      return "done";
    });
    const key = newKey();
    expect([(await send(app, key)).status, (await send(app, key)).body]).toEqual([500, "done"]);
  });

  it("may be none at all, and is one even if nobody is there any more", async () => {
    let count = 0;
    let finish = (): void => {};
    const held = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const app = await create();
    app.post("/orders", { config: { idempotency: { onInFlight: { waitMs: 10_000 } } } }, async () => {
      count += 1;
      await held;
    });
    const port = await serve(app);
    const key = newKey();
    const client = exchange(port, { method: "POST", path: "/orders", headers: [["Idempotency-Key", key]] });
    client.response.catch(() => {});
    while (count === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    client.disconnect();
    await new Promise((resolve) => setTimeout(resolve, 50));
    finish();
    const headers = { "idempotency-key": key };
    const again = await fetch(`http://127.0.0.1:${port}/orders`, { method: "POST", headers });
    expect([again.status, again.headers.get("idempotency-replayed"), count]).toEqual([200, "true", 1]);
  });
});
