import { gunzipSync } from "node:zlib";
import compress from "@fastify/compress";
import multipart from "@fastify/multipart";
import type { FastifyInstance } from "fastify";
import { createIdempotency } from "oncekey";
import { idempotent } from "oncekey/http/fastify";
import { memoryStore } from "oncekey/stores/memory";
import { describe, expect, it } from "vitest";
import { bare, closeAll, create, idempotency, inScope, newKey, send, serve } from "./fastify-app.js";

closeAll();

describe("which routes are protected", () => {
  it("is said by each route, over what the plugin says", async () => {
    let count = 0;
    const app = bare();
    await app.register(idempotent(idempotency, { onMissingKey: "run", operation: undefined }));
    app.post("/orders", () => ++count);
    app.post("/bare", { config: { idempotency: false } }, () => ++count);
    app.post("/strict", { config: { idempotency: { onMissingKey: "reject" } } }, () => ++count);
    app.get("/orders", () => ++count);
    const key = newKey();
    expect([(await send(app, key)).replay, (await send(app, key)).replay]).toEqual([false, true]);
    expect([(await send(app, key, {}, "/bare")).replay, (await send(app, key, {}, "/bare")).replay]).toEqual([
      false,
      false,
    ]);
    const without = async (url: string): Promise<number> =>
      (await app.inject({ method: "POST", url })).statusCode;
    expect([await without("/orders"), await without("/strict")]).toEqual([200, 400]);
    const read = { method: "GET", url: "/orders", headers: { "idempotency-key": key } } as const;
    expect((await app.inject(read)).body).not.toBe((await app.inject(read)).body);
  });

  it("ends with the scope that the plugin is registered in", async () => {
    const app = bare();
    await inScope(app, async (scope) => {
      await scope.register(idempotent(idempotency));
      scope.post("/inside", () => "inside");
    });
    app.post("/outside", () => "outside");
    const key = newKey();
    await send(app, key, {}, "/inside");
    await send(app, key, {}, "/outside");
    expect((await send(app, key, {}, "/inside")).replay).toBe(true);
    expect((await send(app, key, {}, "/outside")).replay).toBe(false);
  });

  it("is decided by the innermost registration, once", async () => {
    const app = await create();
    await inScope(app, async (scope) => {
      await scope.register(idempotent(idempotency, { onCompleted: "reject" }));
      scope.post("/once", () => "once");
    });
    app.post("/orders", () => "again");
    const key = newKey();
    expect([(await send(app, key, {}, "/once")).status, (await send(app, key, {}, "/once")).status]).toEqual([
      200, 409,
    ]);
    expect([(await send(app, key)).status, (await send(app, key)).status]).toEqual([200, 200]);
  });

  it("takes in routes that were declared before the plugin had loaded, and no others", async () => {
    let count = 0;
    const app = bare();
    void app.register(idempotent(idempotency));
    app.post("/orders", () => ++count);
    app.post("/bare", { config: { idempotency: false } }, () => ++count);
    await app.ready();
    const key = newKey();
    expect([(await send(app, key)).body, (await send(app, key)).replay]).toEqual(["1", true]);
    await send(app, key, {}, "/bare");
    expect((await send(app, key, {}, "/bare")).body).toBe("3");
    expect([(await send(app, key, {}, "/none")).status, (await send(app, key, {}, "/none")).replay]).toEqual([
      404,
      false,
    ]);
  });

  it("finds mistakes in the options of a route when it is declared", async () => {
    const app = await create();
    const declare = () => app.post("/orders", { config: { idempotency: { leaseMs: -1 } } }, () => "never");
    expect(declare).toThrow("leaseMs");
  });

  it("names the operation by the pattern, mount included", async () => {
    const app = await create();
    const declare = async (scope: FastifyInstance): Promise<void> => {
      scope.post("/", () => "root");
      scope.post("/:id", () => "one");
    };
    await inScope(app, declare, "/orders");
    const key = newKey();
    expect((await send(app, key, {}, "/orders/1")).status).toBe(200);
    expect((await send(app, key, {}, "/orders/2")).status).toBe(422);
    expect((await send(app, key, {}, "/orders")).status).toBe(200);
  });
});

describe("the fingerprint", () => {
  it("is taken before validation changes the body", async () => {
    const app = await create();
    const schema = {
      body: { type: "object", properties: { n: { type: "integer" }, d: { type: "string", default: "x" } } },
    };
    app.addHook("preValidation", (request, _reply, done) => {
      if (typeof request.body === "object") Object.assign(request.body ?? {}, { at: Math.random() });
      done();
    });
    app.post("/orders", { schema }, (request) => request.body);
    const key = newKey();
    expect(JSON.parse((await send(app, key, { n: "5" })).body)).toMatchObject({ n: 5, d: "x" });
    expect((await send(app, key, { n: 5 })).status).toBe(422);
  });

  it("is that of the parts of a form, whatever lies between them", async () => {
    const app = await create();
    await app.register(multipart);
    app.post("/uploads", async (request) => {
      const file = await request.file();
      return (await file?.toBuffer())?.toString();
    });
    const port = await serve(app);
    const key = newKey();
    const upload = async (content: string): Promise<Response> => {
      const form = new FormData();
      form.set("file", new Blob([content]), "a.txt");
      const headers = { "idempotency-key": key };
      return fetch(`http://127.0.0.1:${port}/uploads`, { method: "POST", headers, body: form });
    };
    expect(await (await upload("first")).text()).toBe("first");
    expect((await upload("first")).headers.get("idempotency-replayed")).toBe("true");
    expect((await upload("other")).status).toBe(422);
  });

  it("is refused where a parser has kept nothing", async () => {
    const app = await create();
    app.addContentTypeParser("application/x-json", (_request, payload, done) => {
      payload.resume();
      payload.on("end", () => done(null));
    });
    app.removeContentTypeParser("application/json");
    app.addContentTypeParser("application/json", (_request, payload, done) => {
      payload.resume();
      payload.on("end", () => done(null));
    });
    app.post("/orders", () => "never");
    expect(JSON.parse((await send(app, newKey())).body)).toMatchObject({ code: "CONFIGURATION_INVALID" });
  });
});

describe("the order of hooks", () => {
  it("claims after the route's own preHandler, whose user the scope sees", async () => {
    const app = bare();
    app.decorateRequest("user", "");
    const scope = (request: unknown): string => (request as { readonly user: string }).user;
    await app.register(idempotent(createIdempotency({ store: memoryStore() }), { scope }));
    const authenticate = async (request: object): Promise<void> => {
      Object.assign(request, { user: "alice" });
    };
    app.post("/orders", { preHandler: authenticate }, () => "ok");
    expect((await send(app, newKey())).status).toBe(200);
  });

  it("compresses replays as it compresses answers", async () => {
    const app = await create();
    await app.register(compress, { threshold: 0 });
    const text = "long ".repeat(1000);
    app.post("/orders", (_request, reply) => reply.type("text/plain").send(text));
    const headers = { "idempotency-key": newKey(), "accept-encoding": "gzip" };
    const answers = [];
    for (const encoding of ["gzip", "gzip", "identity"]) {
      const response = await app.inject({
        method: "POST",
        url: "/orders",
        headers: { ...headers, "accept-encoding": encoding },
      });
      const { rawPayload } = response;
      answers.push([response.headers["content-encoding"], response.headers["idempotency-replayed"]]);
      expect(String(encoding === "gzip" ? gunzipSync(rawPayload) : rawPayload)).toBe(text);
    }
    expect(answers).toEqual([
      ["gzip", undefined],
      ["gzip", "true"],
      [undefined, "true"],
    ]);
  });
});

it("hands out the work of the request", async () => {
  const app = await create();
  app.post("/orders", (request) => ({ attempt: idempotency.workOf(request).attempt }));
  expect(JSON.parse((await send(app, newKey())).body)).toEqual({ attempt: 1 });
});
