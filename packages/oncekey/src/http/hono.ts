/**
 * @module
 * `oncekey/http/hono`: a middleware for Hono.
 *
 * Invariant: translation only. Put it on the route, after authentication; compression and CORS go around it. What
 * was thrown below it has been rendered when it looks.
 */
import type { Context, Env, MiddlewareHandler } from "hono";
import type { Idempotency } from "../core/idempotency.js";
import { createExchange } from "./exchange.js";
import { readHonoBody } from "./hono-body.js";
import { withoutNames } from "./operation.js";
import type { HttpArguments, HttpOptions } from "./options.js";
import { answerWeb } from "./web-exchange.js";
import { protectRequest, webRequest } from "./web-request.js";
import { linesOf } from "./web-response.js";

export type { HttpOptions, ScopedHttpOptions } from "./options.js";

/**
 * Makes what comes after it run once per key, and gives repeats the first answer.
 *
 * `c.req.raw.signal` is that of the claim: a client that leaves does not abort the work.
 *
 * @example app.post("/payments", idempotent<AppEnv>(idempotency, { scope: (c) => c.get("userId") }), charge);
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 */
// biome-ignore lint/suspicious/noExplicitAny: Hono's own default, without which its handlers do not fit.
export function idempotent<E extends Env = any, const I extends Idempotency = Idempotency>(
  idempotency: I,
  ...[options]: HttpArguments<I, Context<E>>
): MiddlewareHandler<E> {
  const known: HttpOptions<Context<E>> = options === undefined ? {} : options;
  const exchange = createExchange(idempotency, known);
  return async (c, next) => {
    const body = (maxBytes: number) => readHonoBody(c.req, maxBytes);
    const response = await answerWeb(
      exchange,
      webRequest(c.req.raw, { carrier: c, route: routeOf(c), body }),
      {
        // What `next` settles with is Hono's own.
        pass: async () => void (await next()),
        async start(begun) {
          protectRequest(c.req.raw, c, begun);
          await next();
          // Asked for a response that nobody has given, Hono makes an empty one with status 200.
          if (!c.finalized)
            throw new TypeError("No handler has answered: return a Response, or await next()");
          return c.res;
        },
        thrown: () => c.error,
        // Looking at `c.res` would make one, into which Hono would merge the handler's.
        before: () => linesOf(c.body(null).headers),
      },
    );
    if (response === undefined) return;
    // Hono merges the headers of the old response into a new one.
    c.res = undefined;
    c.res = response;
  };
}

/** On a route it is that route; before one, the first that answers this method and no other. */
function routeOf({ req }: Context): string | undefined {
  const { matchedRoutes, routeIndex, method } = req;
  const here = matchedRoutes[routeIndex];
  const route = here?.method === method ? here : matchedRoutes.find((other) => other.method === method);
  // In braces stands a regular expression.
  return route?.path.replace(/\{[^}]+\}/g, withoutNames);
}
