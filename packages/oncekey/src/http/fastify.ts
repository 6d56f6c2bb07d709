/**
 * @module
 * `oncekey/http/fastify`: a plugin for Fastify 5.
 *
 * Invariant: translation only. It protects the routes of the scope that it is registered in, and of the scopes
 * inside; the innermost registration counts.
 *
 * Of a route declared after it, the protocol begins after all `preHandler` hooks, so that authentication comes before.
 * A route declared before it has loaded (which is at the first `await`, not at `register`) is protected too, but its own
 * `preHandler` hooks come after the claim.
 */
import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from "fastify";
import type { Idempotency } from "../core/idempotency.js";
import { isOptions } from "../core/policy-checks.js";
import { createExchange } from "./exchange.js";
import { protectionHooks } from "./fastify-exchange.js";
import { earlierRoutes, type ProtectionOf, protectRoute } from "./fastify-routes.js";
import type { HttpArguments, HttpOptions } from "./options.js";

export type { HttpOptions, ScopedHttpOptions } from "./options.js";

declare module "fastify" {
  interface FastifyContextConfig {
    /** `false`: not protected. Options: over those of the plugin. */
    idempotency?: boolean | HttpOptions<FastifyRequest> | undefined;
  }
}

/**
 * Makes the routes of a scope run once per key, and gives repeats the first answer.
 *
 * @example await app.register(idempotent(idempotency, { scope: (request) => request.user?.id }));
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options; for those of a route,
 * when it is declared.
 */
export function idempotent<const I extends Idempotency>(
  idempotency: I,
  ...[options]: HttpArguments<I, FastifyRequest>
): FastifyPluginAsync {
  const known: HttpOptions<FastifyRequest> = options === undefined ? {} : options;
  const common = createExchange(idempotency, known);
  const protectionOf: ProtectionOf = (setting, url) => {
    if (setting === false) return undefined;
    const inherits = setting === undefined || setting === true;
    return { exchange: inherits ? common : createExchange(idempotency, over(known, setting)), url };
  };

  const plugin: FastifyPluginAsync = async (fastify) => {
    fastify.addHook("onRoute", (route) => {
      protectRoute(route, protectionOf(route.config?.idempotency, route.url));
    });
    if (fastify.printRoutes() !== NO_ROUTES) protectEarlier(fastify, protectionOf);
  };
  return Object.assign(plugin, {
    // As fastify-plugin marks what belongs to the scope that registers it.
    [Symbol.for("skip-override")]: true,
    [Symbol.for("fastify.display-name")]: "oncekey",
    [Symbol.for("plugin-meta")]: { name: "oncekey", fastify: "5.x" },
  });
}

const NO_ROUTES = "(empty tree)";

/** Fastify tells of no route that is there already, but it runs the hooks of the scope for all. */
function protectEarlier(fastify: FastifyInstance, protectionOf: ProtectionOf): void {
  const hooks = protectionHooks(earlierRoutes(protectionOf));
  fastify.addHook("preParsing", hooks.preParsing);
  fastify.addHook("preValidation", hooks.preValidation);
  fastify.addHook("preHandler", hooks.preHandler);
  fastify.addHook("onSend", hooks.onSend);
  fastify.addHook("onError", hooks.onError);
}

/** A property that is `undefined` is not set. What is no object is left for the exchange to refuse. */
function over(
  common: HttpOptions<FastifyRequest>,
  own: HttpOptions<FastifyRequest>,
): HttpOptions<FastifyRequest> {
  if (!isOptions(own)) return own;
  const set = Object.entries(own).filter(([, value]) => value !== undefined);
  return { ...common, ...Object.fromEntries(set) };
}
