import { createAdaptorServer } from "@hono/node-server";
import { idempotent } from "oncekey/http/fetch";
import { type BoundRoute, bindHttpContract, type ContractApp, startServer } from "oncekey/testing";
import { describe, it } from "vitest";
import { contractStores } from "../support/contract-stores.js";
import { bodyOf, JOINED, RETURNED, responseOf } from "./web-replies.js";

const THROWN = "who makes an answer of a thrown error is outside and cannot be seen";

describe("httpContract: fetch", () => {
  bindHttpContract(
    { describe, it },
    {
      ...contractStores,
      listen: (app) => startServer(createAdaptorServer({ fetch: serve(app) }) as never),
      waivers: {
        ...RETURNED,
        ...JOINED,
        "a client error that was thrown is kept like one that was returned": THROWN,
      },
    },
  );
});

type Handler = (request: Request) => Promise<Response>;

/** A router and an outer layer, as small as they can be. */
function serve({ idempotency, routes, outerHeaders }: ContractApp): Handler {
  const table = routes.map((route) => {
    const options = route.options<Request>((request, name) => request.headers.get(name) ?? undefined);
    // What a router knows is told to the adapter by this option.
    const shape = (route.mount + route.path).replace(/:\w+/g, ":");
    const operation = options.operation ?? `${route.method} ${shape}`;
    const guarded = idempotent(idempotency, { ...options, operation }, (request) =>
      answer(route, request, () => idempotency.workOf(request)),
    );
    const bare: Handler = (request) => answer(route, request, () => idempotency.workOf(request));
    const pattern = new RegExp(`^${(route.mount + route.path).replace(/:\w+/g, "[^/]+")}$`);
    return { method: route.method, pattern, handler: route.protected ? guarded : bare };
  });
  return async (request) => {
    const { pathname } = new URL(request.url);
    const found = table.find(({ method, pattern }) => method === request.method && pattern.test(pathname));
    const response = await (found?.handler(request) ?? new Response(null, { status: 404 }));
    for (const [name, value] of outerHeaders()) response.headers.append(name, value);
    return response;
  };
}

async function answer(
  route: BoundRoute,
  request: Request,
  work: () => ReturnType<ContractApp["idempotency"]["workOf"]>,
): Promise<Response> {
  const reply = await route.handle({ body: await bodyOf(route, request), work });
  if (reply.kind === "throw") throw new Error(reply.message);
  return responseOf(reply);
}
