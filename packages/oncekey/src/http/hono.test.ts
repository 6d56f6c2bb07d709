import { type Context, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { validator } from "hono/validator";
import { describe, expect, it } from "vitest";
import { notPerformed } from "../core/errors.js";
import { createIdempotency } from "../core/idempotency.js";
import { memoryStore } from "../stores/memory/index.js";
import { idempotent } from "./hono.js";

const idempotency = createIdempotency({ store: memoryStore(), scope: "global" });
const guard = idempotent(idempotency);

let keys = 0;
/** Sends the same request as often as it is called. */
function sender(app: Hono, path = "/orders", init: RequestInit = {}): () => Promise<Response> {
  keys += 1;
  const key = `hono-${keys}`;
  const body = init.body ?? '{"amount":10}';
  const type: Record<string, string> = typeof body === "string" ? { "Content-Type": "application/json" } : {};
  const length: Record<string, string> =
    typeof body === "string" ? { "Content-Length": `${body.length}` } : {};
  return async () =>
    app.request(path, {
      method: "POST",
      ...init,
      body,
      headers: { ...type, ...length, "Idempotency-Key": key, ...init.headers },
    });
}

const isReplay = (response: Response): boolean => response.headers.get("idempotency-replayed") === "true";

describe("the body", () => {
  it.each<[string, (c: Context) => Promise<unknown>]>([
    ["c.req.json", (c) => c.req.json()],
    ["c.req.text", (c) => c.req.text()],
    ["c.req.arrayBuffer", async (c) => Buffer.from(await c.req.arrayBuffer()).toString()],
    ["c.req.raw.json", (c) => c.req.raw.json()],
    ["c.req.raw.text", (c) => c.req.raw.text()],
    ["c.req.raw.clone().json", (c) => c.req.raw.clone().json()],
    ["c.req.raw.body", async (c) => new Response(c.req.raw.body).text()],
    ["a request made of c.req.raw", async (c) => new Request("http://x.example", c.req.raw).text()],
  ])("can be read with %s", async (_, read) => {
    const app = new Hono();
    app.post("/orders", guard, async (c) => {
      const body = await read(c);
      expect(c.req.raw.method).toBe("POST");
      return c.json({ body: typeof body === "string" ? JSON.parse(body) : body });
    });
    const send = sender(app);
    expect(await (await send()).json()).toEqual({ body: { amount: 10 } });
    expect(isReplay(await send())).toBe(true);
  });

  it("may have no known length", async () => {
    const app = new Hono();
    app.post("/orders", guard, async (c) => c.text(await c.req.raw.text()));
    const parts = (): ReadableStream<Uint8Array> =>
      new ReadableStream({
        start(controller) {
          controller.enqueue(Buffer.from("in "));
          controller.enqueue(Buffer.from("parts"));
          controller.close();
        },
      });
    const send = (): Promise<Response> | Response =>
      app.request("/orders", {
        method: "POST",
        body: parts(),
        duplex: "half",
        headers: { "Idempotency-Key": "in-parts" },
      } as RequestInit);
    expect(await (await send()).text()).toBe("in parts");
    expect(isReplay(await send())).toBe(true);
  });

  it("may have been read by Hono before", async () => {
    const app = new Hono();
    const check = validator("json", (value) => value as { amount: number });
    app.post("/orders", check, guard, (c) => c.json(c.req.valid("json")));
    const send = sender(app);
    expect(await (await send()).json()).toEqual({ amount: 10 });
    expect(isReplay(await send())).toBe(true);
  });

  it("must not have been taken from the raw request before, or made a form without the rest", async () => {
    for (const read of [(c: Context) => c.req.raw.text(), (c: Context) => c.req.formData()]) {
      const app = new Hono();
      app.use(async (c, next) => {
        await read(c);
        await next();
      });
      app.post("/orders", guard, (c) => c.text("never"));
      const form = new FormData();
      form.set("a", "b");
      const refused = await sender(app, "/orders", { body: form })();
      expect(refused.status).toBe(500);
      expect(await refused.json()).toMatchObject({ code: "CONFIGURATION_INVALID" });
    }
  });
});

describe("the answer", () => {
  it("is that of an error which Hono has rendered", async () => {
    let count = 0;
    const app = new Hono();
    app.onError((error, c) =>
      c.json({ error: error.message }, error instanceof HTTPException ? error.status : 500),
    );
    app.post("/orders", guard, () => {
      count += 1;
      throw new HTTPException(422, { message: "sold out" });
    });
    const send = sender(app);
    const [first, second] = [await send(), await send()];
    expect([first.status, second.status, count]).toEqual([422, 422, 1]);
    expect(await second.json()).toEqual({ error: "sold out" });
  });

  it("is thrown on if it is no error that Hono renders", async () => {
    const app = new Hono();
    app.post("/orders", guard, () => {
      throw "text";
    });
    await expect(sender(app)()).rejects.toBe("text");
  });

  it("is an error if a handler has forgotten it, and frees the key", async () => {
    let count = 0;
    const app = new Hono();
    app.onError((_error, c) => c.text("forgotten", 500));
    app.post("/orders", guard, (c) => {
      count += 1;
      return count === 1 ? (undefined as never) : c.text("done");
    });
    const send = sender(app);
    expect([(await send()).status, await (await send()).text()]).toEqual([500, "done"]);
  });

  it("has what layers around it set for this request, and not what they set for the first", async () => {
    let request = 0;
    const app = new Hono();
    app.use(async (c, next) => {
      request += 1;
      c.res.headers.set("X-Served", `${request}`);
      c.header("Vary", "Origin");
      await next();
    });
    app.post("/orders", guard, (c) => {
      c.header("ETag", '"1"');
      return c.json({}, 201);
    });
    const send = sender(app);
    const [first, second] = [await send(), await send()];
    expect([first.headers.get("x-served"), second.headers.get("x-served")]).toEqual(["1", "2"]);
    expect([second.status, second.headers.get("etag"), second.headers.get("vary")]).toEqual([
      201,
      '"1"',
      "Origin",
    ]);
  });

  it("frees the key at most once, too, if it was made of the word that nothing has happened", async () => {
    let count = 0;
    const app = new Hono();
    app.onError((error, c) => c.text(error.message, 500));
    app.post(
      "/orders",
      idempotent(idempotency, { guarantee: "at-most-once", acceptsLostWrites: true }),
      (c) => {
        count += 1;
        if (count === 1) throw notPerformed("the network refused");
        return c.text("done");
      },
    );
    const send = sender(app);
    expect([(await send()).status, (await send()).status]).toEqual([500, 200]);
  });
});

describe("the operation", () => {
  it.each<[string, (app: Hono) => void, boolean]>([
    ["on a route", (app) => app.post("/orders/:id", guard, (c) => c.text("a")), true],
    ["before it", (app) => app.use("/orders/*", guard).post("/orders/:order", (c) => c.text("a")), true],
    [
      "before one for all methods",
      (app) => app.use("/orders/*", guard).all("/orders/:id", (c) => c.text("a")),
      false,
    ],
  ])("is the pattern of the route where it is known: %s", async (_, declare, shared) => {
    const app = new Hono();
    declare(app);
    keys += 1;
    const headers = { "Idempotency-Key": `shape-${keys}` };
    await app.request("/orders/1", { method: "POST", headers });
    const other = await app.request("/orders/2", { method: "POST", headers });
    // One operation: the path is another, so the request is. Two operations: nothing to compare.
    expect(other.status).toBe(shared ? 422 : 200);
  });
});

describe("a request that is protected twice", () => {
  it("is refused at once, since it would wait for itself", async () => {
    const app = new Hono();
    app.use("/orders", guard).post("/orders", guard, (c) => c.text("never"));
    const refused = await sender(app)();
    expect(refused.status).toBe(500);
    expect(await refused.json()).toMatchObject({ code: "KEY_REENTERED" });
  });

  it("may be so under two names", async () => {
    const app = new Hono();
    const named = idempotent(idempotency, { operation: "outer" });
    app.use("/orders", named).post("/orders", guard, (c) => c.text("once"));
    const send = sender(app);
    expect(await (await send()).text()).toBe("once");
    expect(isReplay(await send())).toBe(true);
  });
});

describe("the work", () => {
  it("is found on the context, and its signal on the request", async () => {
    const app = new Hono();
    app.post("/orders", guard, (c) => {
      const work = idempotency.workOf(c);
      return c.json({ attempt: work.attempt, same: c.req.raw.signal === work.signal });
    });
    expect(await (await sender(app)()).json()).toEqual({ attempt: 1, same: true });
  });
});
