import { createServer } from "node:http";
import { Readable } from "node:stream";
import express5, {
  type ErrorRequestHandler,
  type Request,
  type RequestHandler,
  type Response,
} from "express";
import express4 from "express4";
import type { Work } from "oncekey";
import { idempotent } from "oncekey/http/express";
import {
  type BoundRoute,
  bindHttpContract,
  type ContractApp,
  type Reply,
  startServer,
} from "oncekey/testing";
import { describe, it } from "vitest";
import { contractStores } from "../support/contract-stores.js";

type Express = typeof express5;

/** What is known of a body that a parser has consumed is what the parser made of it. */
const PARSED: Readonly<Record<string, string>> = {
  "whole numbers beyond a double are told apart": "the parser has made doubles of them",
  "a chunked request that turns out too large is refused": "the parser has read it within its own limit",
};

describe.each<[string, Express, "before" | "after"]>([
  ["Express 5, parsers before", express5, "before"],
  ["Express 5, parsers after", express5, "after"],
  ["Express 4, parsers before", express4 as Express, "before"],
  ["Express 4, parsers after", express4 as Express, "after"],
])("httpContract: %s", (_, express, parsers) => {
  bindHttpContract(
    { describe, it },
    {
      ...contractStores,
      listen: (app) => startServer(createServer(serve(express, parsers, app))),
      waivers: parsers === "before" ? PARSED : {},
    },
  );
});

function serve(
  express: Express,
  parsers: "before" | "after",
  { idempotency, routes, outerHeaders }: ContractApp,
) {
  const app = express();
  app.use((_req, res, next) => {
    for (const [name, value] of outerHeaders()) res.append(name, value);
    next();
  });
  for (const route of routes) {
    const options = route.options<Request>((req, name) => req.get(name));
    const guard = route.protected ? [idempotent(idempotency, options)] : [];
    const parse = parserOf(express, route);
    const handle = handlerOf(route, (req) => idempotency.workOf(req));
    const router = express.Router();
    const stack = parsers === "before" ? [...parse, ...guard, handle] : [...guard, ...parse, handle];
    router.route(route.path)[route.method.toLowerCase() as "post"](...stack);
    app.use(route.mount === "" ? "/" : route.mount, router);
  }
  const fail: ErrorRequestHandler = (error: { readonly status?: number }, _req, res, next) => {
    if (res.headersSent) next(error);
    else res.status(error.status ?? 500).json({ error: "handled" });
  };
  return app.use(fail);
}

function parserOf(express: Express, { parses }: BoundRoute): RequestHandler[] {
  if (parses === "nothing") return [];
  const limit = "10mb";
  return [parses === "json" ? express.json({ limit, strict: false }) : express.raw({ limit, type: "*/*" })];
}

function handlerOf(route: BoundRoute, workOf: (req: Request) => Work): RequestHandler {
  return (req, res, next) => {
    const reply = route.handle({ body: req.body, work: () => workOf(req) });
    if (reply instanceof Promise) reply.then((late) => send(res, late)).catch(next);
    else send(res, reply);
  };
}

function send(res: Response, reply: Reply): void {
  if ("headers" in reply) for (const [name, value] of reply.headers) res.append(name, value);
  if ("status" in reply && reply.status !== undefined) res.status(reply.status);
  switch (reply.kind) {
    case "json":
      res.json(reply.value);
      break;
    case "bytes":
      res.send(Buffer.from(reply.body));
      break;
    case "empty":
      res.end();
      break;
    case "redirect":
      res.redirect(reply.status, reply.location);
      break;
    case "stream":
      Readable.from(reply.chunks())
        .on("error", (error) => res.destroy(error))
        .pipe(res);
      break;
    case "throw":
      throw Object.assign(new Error(reply.message), { status: reply.status });
    case "end-then-throw":
      res.json(reply.value);
      throw new Error("Thrown after the answer");
    case "destroy":
      res.destroy();
  }
}
