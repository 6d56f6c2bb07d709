/**
 * What the types of the Fastify adapter promise. `tsc` is the judge; the test run only proves that calls of this
 * form are accepted at run time too.
 */
import Fastify, { type FastifyRequest } from "fastify";
import { createIdempotency, type Idempotency } from "oncekey";
import { idempotent } from "oncekey/http/fastify";
import { memoryStore } from "oncekey/stores/memory";
import { expect, expectTypeOf, it } from "vitest";

const store = memoryStore();
const scoped = createIdempotency({ store, scope: "global" });
const unscoped = createIdempotency({ store });

it("leaves the inference of routes alone", async () => {
  const app = Fastify();
  await app.register(idempotent(scoped));
  app.post<{ Params: { id: string }; Body: { amount: number }; Reply: { total: number } }>(
    "/orders/:id",
    { config: { idempotency: { retentionMs: 60_000, scope: (request) => request.ip } } },
    async (request) => {
      expectTypeOf(request.params).toEqualTypeOf<{ id: string }>();
      expectTypeOf(request.body).toEqualTypeOf<{ amount: number }>();
      return { total: request.body.amount };
    },
  );
  app.post("/bare", { config: { idempotency: false } }, () => "bare");
  app.post("/like-the-others", { config: { idempotency: true } }, () => "guarded");
  // The types of a route's configuration are too lenient to notice a misspelling, so it is noticed here.
  const misspelt = () => app.post("/misspelt", { config: { idempotency: { leasMs: 1 } } }, () => "never");
  expect(misspelt).toThrow("leasMs");
});

it("asks for a scope unless the instance has one", () => {
  idempotent(scoped, { operation: "orders.create" });
  idempotent(unscoped, {
    scope: (request) => {
      expectTypeOf(request).toEqualTypeOf<FastifyRequest>();
      return request.ip;
    },
  });
  // @ts-expect-error Options are missing, and with them the scope.
  expect(() => idempotent(unscoped)).toThrow("scope is missing");
  // @ts-expect-error The scope is missing.
  expect(() => idempotent(unscoped, { operation: "orders.create" })).toThrow("scope is missing");
});

it("takes an instance of any kind", () => {
  const protect = (idempotency: Idempotency) => idempotent(idempotency, { scope: "global" });
  expect(protect(scoped)).toBeTypeOf("function");
});
