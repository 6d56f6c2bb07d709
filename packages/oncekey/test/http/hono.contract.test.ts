import { createAdaptorServer } from "@hono/node-server";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode, StatusCode } from "hono/utils/http-status";
import { idempotent } from "oncekey/http/hono";
import { type BoundRoute, bindHttpContract, type ContractApp, startServer } from "oncekey/testing";
import { describe, it } from "vitest";
import { contractStores } from "../support/contract-stores.js";
import { bodyOf, JOINED, RETURNED } from "./web-replies.js";

describe.each([["on each route"], ["before all routes"]])("httpContract: Hono, %s", (place) => {
  bindHttpContract(
    { describe, it },
    {
      ...contractStores,
      listen: (app) =>
        startServer(createAdaptorServer({ fetch: serve(app, place === "on each route").fetch }) as never),
      waivers: { ...RETURNED, ...JOINED },
    },
  );
});

function serve({ idempotency, routes, outerHeaders }: ContractApp, onRoute: boolean): Hono {
  const app = new Hono();
  app.use(async (c, next) => {
    for (const [name, value] of outerHeaders()) c.header(name, value, { append: true });
    await next();
  });
  for (const route of routes) {
    const guard = idempotent(
      idempotency,
      route.options<Context>((c, name) => c.req.header(name)),
    );
    const mounted = new Hono();
    const handle: MiddlewareHandler = (c) => answer(route, c, () => idempotency.workOf(c));
    if (!route.protected) mounted.on(route.method, route.path, handle);
    else if (onRoute) mounted.on(route.method, route.path, guard, handle);
    else mounted.use(route.path, ofMethod(route.method, guard)).on(route.method, route.path, handle);
    app.route(route.mount === "" ? "/" : route.mount, mounted);
  }
  return app;
}

/** A middleware before the routes runs for each that has its path. */
function ofMethod(method: string, guard: MiddlewareHandler): MiddlewareHandler {
  return (c, next) => (c.req.method === method ? guard(c, next) : next());
}

async function answer(
  route: BoundRoute,
  c: Context,
  work: () => ReturnType<ContractApp["idempotency"]["workOf"]>,
): Promise<Response> {
  const reply = await route.handle({ body: await bodyOf(route, c.req), work });
  if ("headers" in reply) for (const [name, value] of reply.headers) c.header(name, value, { append: true });
  switch (reply.kind) {
    case "json":
      return c.json(reply.value as object, reply.status as ContentfulStatusCode);
    case "bytes":
      return c.body(new Uint8Array(reply.body), reply.status as ContentfulStatusCode);
    case "redirect":
      return c.redirect(reply.location, reply.status);
    case "stream":
      return c.body(ReadableStream.from(reply.chunks()) as never, reply.status as ContentfulStatusCode);
    case "throw":
      if (reply.status === undefined) throw new Error(reply.message);
      throw new HTTPException(reply.status as ContentfulStatusCode, { message: reply.message });
    case "empty":
      return c.body(null, reply.status as StatusCode);
    default:
      throw new Error(`A handler that returns its answer cannot: ${reply.kind}`);
  }
}
