import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { idempotent } from "oncekey/http/node";
import {
  type BoundRoute,
  bindHttpContract,
  type ContractApp,
  type Reply,
  startServer,
} from "oncekey/testing";
import { describe, it } from "vitest";
import { contractStores } from "../support/contract-stores.js";

describe("httpContract: node:http", () => {
  bindHttpContract(
    { describe, it },
    { ...contractStores, listen: (app) => startServer(createServer(serve(app))) },
  );
});

function serve({ idempotency, routes, outerHeaders }: ContractApp): RequestListener {
  const handlers = routes.map((route) => {
    const options = route.options<IncomingMessage>((req, name) => req.headers[name]?.toString());
    const operation = `${route.method} ${route.mount}${route.path.replaceAll(/:\w+/g, ":")}`;
    const handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
      const reply = route.handle({ body: await bodyOf(route, req), work: () => idempotency.workOf(req) });
      await send(res, reply instanceof Promise ? await reply : reply);
    };
    return {
      route,
      handle: route.protected ? idempotent(idempotency, { operation, ...options }, handle) : handle,
    };
  });
  return (req, res) => {
    for (const [name, value] of outerHeaders()) res.appendHeader(name, value);
    const found = handlers.find(({ route }) => matches(route, req));
    // A program of its own would log what the handler threw; here it is meant.
    if (found === undefined) res.writeHead(404).end();
    else found.handle(req, res).catch(() => undefined);
  };
}

function matches({ mount, path, method }: BoundRoute, req: IncomingMessage): boolean {
  const pattern = (mount + path).replaceAll(/:\w+/g, "[^/]+");
  return req.method === method && new RegExp(`^${pattern}(\\?|$)`).test(req.url ?? "");
}

async function bodyOf({ parses }: BoundRoute, req: IncomingMessage): Promise<unknown> {
  if (parses === "nothing") return undefined;
  const bytes = Buffer.concat(await req.toArray());
  return parses === "json" && bytes.length > 0 ? JSON.parse(bytes.toString()) : bytes;
}

async function send(res: ServerResponse, reply: Reply): Promise<void> {
  if ("headers" in reply) for (const [name, value] of reply.headers) res.appendHeader(name, value);
  if ("status" in reply && reply.status !== undefined) res.statusCode = reply.status;
  switch (reply.kind) {
    case "json":
      res.setHeader("Content-Type", "application/json").end(JSON.stringify(reply.value));
      break;
    case "bytes":
      res.end(reply.body);
      break;
    case "empty":
      res.end();
      break;
    case "redirect":
      res.setHeader("Location", reply.location).end();
      break;
    case "stream":
      Readable.from(reply.chunks())
        .on("error", (error) => res.destroy(error))
        .pipe(res);
      break;
    case "throw":
      // Node has no errors with a status: a handler that wants one answers.
      if (reply.status === undefined) throw new Error(reply.message);
      res.end(reply.message);
      break;
    case "end-then-throw":
      res.end(JSON.stringify(reply.value));
      throw new Error("Thrown after the answer");
    case "destroy":
      res.destroy();
  }
}
