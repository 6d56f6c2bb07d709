/**
 * What the types of the adapters promise. `tsc` is the judge; the test run only proves that calls of this form
 * are accepted at run time too.
 */
import { createServer, IncomingMessage, type ServerResponse } from "node:http";
import express, { type Request, type Response } from "express";
import { createIdempotency, type Idempotency } from "oncekey";
import { idempotent as idempotentExpress } from "oncekey/http/express";
import { idempotent as idempotentNode } from "oncekey/http/node";
import { memoryStore } from "oncekey/stores/memory";
import { expect, expectTypeOf, it } from "vitest";

const store = memoryStore();
const scoped = createIdempotency({ store, scope: "global" });
const unscoped = createIdempotency({ store });

interface Account {
  readonly id: string;
}
declare module "express-serve-static-core" {
  interface Request {
    account?: Account;
  }
}

it("Express: takes no part in the inference of the route", () => {
  const app = express();
  const guard = idempotentExpress(scoped);
  app.post("/orders/:id", guard, (req, res) => {
    expectTypeOf(req.params).toEqualTypeOf<{ id: string }>();
    // @ts-expect-error There is no such parameter.
    expectTypeOf(req.params.nope).toEqualTypeOf<string>();
    res.json(req.params.id);
  });
  app.post(
    "/typed",
    guard,
    (
      req: Request<object, { total: number }, { amount: number }, { dry?: string }>,
      res: Response<{ total: number }>,
    ) => {
      expectTypeOf(req.body).toEqualTypeOf<{ amount: number }>();
      expectTypeOf(req.query).toEqualTypeOf<{ dry?: string }>();
      res.json({ total: req.body.amount });
    },
  );
  app.use(guard);
  express.Router().use("/orders", guard);
  expect(guard).toHaveLength(3);
});

it("Express: asks for a scope unless the instance has one", () => {
  idempotentExpress(scoped, { operation: "orders.create" });
  idempotentExpress(scoped, { scope: "global" });
  idempotentExpress(unscoped, { scope: (req) => req.account?.id });
  idempotentExpress(unscoped, {
    scope: (req) => {
      expectTypeOf(req).toEqualTypeOf<Request>();
      return [req.ip ?? "", 7];
    },
  });
  // @ts-expect-error Options are missing, and with them the scope.
  expect(() => idempotentExpress(unscoped)).toThrow("scope is missing");
  // @ts-expect-error The scope is missing.
  expect(() => idempotentExpress(unscoped, { operation: "orders.create" })).toThrow("scope is missing");
  // @ts-expect-error A misspelling, beside options that are right.
  const misspelt = () => idempotentExpress(unscoped, { scope: "global", leasMs: 1000 });
  expect(misspelt).toBeTypeOf("function");
});

it("Express: takes any instance", () => {
  const either = (idempotency: Idempotency) => idempotentExpress(idempotency, { scope: "global" });
  expect(either(scoped)).toBeTypeOf("function");
  expect(either(unscoped)).toBeTypeOf("function");
});

it("node: keeps the types of the handler", () => {
  class Authenticated extends IncomingMessage {
    caller = "";
  }
  const handler = idempotentNode(
    unscoped,
    { scope: (req) => req.caller },
    (req: Authenticated, res: ServerResponse) => void res.end(req.caller),
  );
  expectTypeOf(handler).toEqualTypeOf<(req: Authenticated, res: ServerResponse) => Promise<void>>();
  const server = createServer({ IncomingMessage: Authenticated }, handler);
  expect(server.listenerCount("request")).toBe(1);
  createServer(idempotentNode(scoped, {}, (_req, res) => void res.end()));
});

it("node: asks for a scope unless the instance has one", () => {
  const handler = (_req: IncomingMessage, res: ServerResponse): void => void res.end();
  // @ts-expect-error The scope is missing.
  expect(() => idempotentNode(unscoped, {}, handler)).toThrow("scope is missing");
  // @ts-expect-error A misspelling.
  const misspelt = () => idempotentNode(scoped, { retentionMS: 1000 }, handler);
  expect(misspelt).toBeTypeOf("function");
});
