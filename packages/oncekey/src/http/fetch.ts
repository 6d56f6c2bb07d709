/**
 * @module
 * `oncekey/http/fetch`: wraps any `(Request) => Response`, such as a route handler of Next.js or what Bun, Deno and
 * Workers serve.
 *
 * Invariant: translation only. There are no routes, so the operation is named by the actual path unless the
 * `operation` option names it.
 */
import type { Idempotency } from "../core/idempotency.js";
import { isResponse, nextAnswerOf } from "./control-flow.js";
import { createExchange } from "./exchange.js";
import { withHandler } from "./option-checks.js";
import type { HttpArguments, HttpOptions } from "./options.js";
import { answerWeb } from "./web-exchange.js";
import { peekRequest, protectRequest, webRequest } from "./web-request.js";

export type { HttpOptions, ScopedHttpOptions } from "./options.js";

/**
 * Makes `handler` run once per key, and gives repeats the first answer.
 *
 * A `Response` that the handler throws is its answer. So is what `redirect()` and `notFound()` of Next.js throw;
 * that is thrown again, for Next.js to answer. Anything else is thrown again and frees the key.
 *
 * The request's `signal` is that of the claim: a client that leaves does not abort the work.
 *
 * @param options `{}` for an instance that has a scope.
 * @example export const POST = idempotent(idempotency, { operation: "charge", scope: callerOf }, charge);
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 */
export function idempotent<
  const I extends Idempotency,
  Req extends Request = Request,
  Rest extends readonly unknown[] = [],
>(
  idempotency: I,
  options: HttpArguments<I, NoInfer<Req>>[0] & {},
  handler: (request: Req, ...rest: Rest) => Response | Promise<Response>,
): (request: Req, ...rest: Rest) => Promise<Response> {
  const known: HttpOptions<Req> = options;
  const exchange = withHandler(handler, () => createExchange(idempotency, known));
  return (request, ...rest) => {
    const body = (maxBytes: number) => peekRequest(request, maxBytes);
    return answerWeb(exchange, webRequest(request, { carrier: request, route: undefined, body }), {
      pass: () => handler(request, ...rest),
      async start(begun) {
        protectRequest(request, request, begun);
        try {
          return await handler(request, ...rest);
        } catch (thrown) {
          if (isResponse(thrown)) return thrown;
          throw thrown;
        }
      },
      before: () => [],
      meaningOf: nextAnswerOf,
    });
  };
}
