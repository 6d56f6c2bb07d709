/**
 * What the types of the fetch and Hono adapters promise. `tsc` is the judge; the test run only proves that calls of
 * this form are accepted at run time too.
 */
import { type Context, Hono } from "hono";
import { createIdempotency, type Idempotency } from "oncekey";
import { idempotent as idempotentFetch } from "oncekey/http/fetch";
import { idempotent as idempotentHono } from "oncekey/http/hono";
import { memoryStore } from "oncekey/stores/memory";
import { expect, expectTypeOf, it } from "vitest";

const store = memoryStore();
const scoped = createIdempotency({ store, scope: "global" });
const unscoped = createIdempotency({ store });

/** As Next.js and Bun extend it. */
interface AppRequest extends Request {
  readonly cookies: ReadonlyMap<string, string>;
}
interface RouteContext {
  readonly params: Promise<{ readonly id: string }>;
}

it("fetch: keeps the handler's exact parameters", () => {
  const plain = idempotentFetch(scoped, {}, () => new Response());
  expectTypeOf(plain).toEqualTypeOf<(request: Request) => Promise<Response>>();
  const route = idempotentFetch(
    unscoped,
    {
      scope: (request) => {
        expectTypeOf(request).toEqualTypeOf<AppRequest>();
        return request.cookies.get("session");
      },
    },
    async (_request: AppRequest, { params }: RouteContext) => Response.json(await params),
  );
  expectTypeOf(route).toEqualTypeOf<(request: AppRequest, context: RouteContext) => Promise<Response>>();
  expect(route).toBeTypeOf("function");
});

it("fetch: asks for a scope unless the instance has one", () => {
  idempotentFetch(scoped, { operation: "orders.create" }, () => new Response());
  // @ts-expect-error The scope is missing.
  expect(() => idempotentFetch(unscoped, {}, () => new Response())).toThrow("scope is missing");
  // @ts-expect-error A misspelling, beside options that are right.
  const misspelt = () => idempotentFetch(unscoped, { scope: "global", leasMs: 1000 }, () => new Response());
  expect(misspelt).toThrow("leasMs");
  // @ts-expect-error What is no answer.
  idempotentFetch(scoped, {}, () => "text");
});

interface AppEnv {
  readonly Variables: { readonly userId: string };
}

it("Hono: knows the environment that is spelled out, and leaves that of the app alone", () => {
  const app = new Hono<AppEnv>();
  const guard = idempotentHono<AppEnv>(unscoped, {
    scope: (c) => {
      expectTypeOf(c.get("userId")).toEqualTypeOf<string>();
      return c.get("userId");
    },
  });
  app.post("/orders/:id", guard, (c) => {
    expectTypeOf(c.req.param("id")).toEqualTypeOf<string>();
    expectTypeOf(c.get("userId")).toEqualTypeOf<string>();
    return c.json({ id: 1 }, 201);
  });
  idempotentHono(unscoped, { scope: (c: Context<AppEnv>) => c.get("userId") });
  app.use("/orders/*", guard);
  expect(guard).toHaveLength(2);
});

it("Hono: asks for a scope unless the instance has one", () => {
  idempotentHono(scoped);
  idempotentHono(scoped, { operation: "orders.create" });
  // @ts-expect-error Options are missing, and with them the scope.
  expect(() => idempotentHono(unscoped)).toThrow("scope is missing");
  // @ts-expect-error The scope is missing.
  expect(() => idempotentHono(unscoped, { operation: "orders.create" })).toThrow("scope is missing");
});

it("takes an instance of any kind", () => {
  const protect = (idempotency: Idempotency) => [
    idempotentFetch(idempotency, { scope: "global" }, () => new Response()),
    idempotentHono(idempotency, { scope: "global" }),
  ];
  expect(protect(scoped)).toHaveLength(2);
});
