/**
 * @module
 * Fastify apps with the plugin, and one way to send them an order.
 */
import Fastify, { type FastifyInstance, type FastifyPluginAsync } from "fastify";
import { createIdempotency } from "oncekey";
import { idempotent } from "oncekey/http/fastify";
import { memoryStore } from "oncekey/stores/memory";
import { afterEach } from "vitest";

export const idempotency = createIdempotency({ store: memoryStore(), scope: "global" });
const apps: FastifyInstance[] = [];

/** Closes what a test has opened, after each. */
export function closeAll(): void {
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
  });
}

/** An app without the plugin. */
export function bare(): FastifyInstance {
  const app = Fastify({ forceCloseConnections: true });
  apps.push(app);
  return app;
}

/** An app whose routes are protected. */
export async function create(): Promise<FastifyInstance> {
  const app = bare();
  await app.register(idempotent(idempotency));
  return app;
}

/** Declares routes in a scope of their own. */
export async function inScope(app: FastifyInstance, declare: FastifyPluginAsync, prefix = ""): Promise<void> {
  await app.register(declare, { prefix });
}

let keys = 0;
export function newKey(): string {
  keys += 1;
  return `fastify-${keys}`;
}

export interface Sent {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
  readonly replay: boolean;
}

export async function send(
  app: FastifyInstance,
  key: string,
  payload: string | object = { amount: 10 },
  url = "/orders",
): Promise<Sent> {
  const response = await app.inject({ method: "POST", url, headers: { "idempotency-key": key }, payload });
  const { statusCode: status, headers, body } = response;
  return { status, headers, body, replay: headers["idempotency-replayed"] === "true" };
}

export async function serve(app: FastifyInstance): Promise<number> {
  await app.listen({ host: "127.0.0.1", port: 0 });
  return (app.addresses()[0] as { readonly port: number }).port;
}
