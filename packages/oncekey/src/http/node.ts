/**
 * @module
 * `oncekey/http/node`: wraps a handler of `node:http`, or of anything that calls handlers as it does.
 *
 * Invariant: translation only. Node has no routes, so the operation is named by the actual path unless the
 * `operation` option names it.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Idempotency } from "../core/idempotency.js";
import { createExchange } from "./exchange.js";
import { nodeAnswering, nodeRequest } from "./node-exchange.js";
import { withHandler } from "./option-checks.js";
import type { HttpArguments, HttpOptions } from "./options.js";

export type { HttpOptions, ScopedHttpOptions } from "./options.js";

/**
 * Makes `handler` run once per key, and gives repeats the first answer.
 *
 * A handler that throws before it has answered gets a bare 500 sent for it and frees its key. What it threw is
 * what the returned promise rejects with: without a `catch` it ends the process, as it would without the wrapper.
 *
 * @param options `{}` for an instance that has a scope.
 * @example createServer(idempotent(idempotency, { operation: "charge", scope: (req) => callerOf(req) }, charge));
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 */
export function idempotent<
  const I extends Idempotency,
  Req extends IncomingMessage = IncomingMessage,
  Res extends ServerResponse = ServerResponse,
>(
  idempotency: I,
  options: HttpArguments<I, NoInfer<Req>>[0] & {},
  handler: (req: Req, res: Res) => unknown,
): (req: Req, res: Res) => Promise<void> {
  const known: HttpOptions<Req> = options;
  const exchange = withHandler(handler, () => createExchange(idempotency, known));
  return async (req, res) => {
    const run = runOf(handler, req, res);
    const request = nodeRequest(req, res, { carrier: req, target: targetOf(req), route: undefined });
    try {
      await exchange.handle(request, nodeAnswering(res, req, run.start, run.thrownForAnswer));
    } catch (error) {
      fail(res);
      throw error;
    }
    await run.over();
  };
}

/** One run of the handler. */
interface Run {
  start(): void;
  /** What the answer was made of, if the handler threw instead of answering. */
  thrownForAnswer(): unknown;
  /** Settles as the handler did. */
  over(): Promise<unknown>;
}

function runOf<Req, Res extends ServerResponse>(
  handler: (req: Req, res: Res) => unknown,
  req: Req,
  res: Res,
): Run {
  let running: Promise<unknown> = Promise.resolve();
  let thrown: unknown;
  return {
    start() {
      running = (async () => handler(req, res))();
      running.catch((error: unknown) => {
        if (!res.writableEnded) thrown = error;
        fail(res);
      });
    },
    thrownForAnswer: () => thrown,
    over: () => running,
  };
}

/** What frameworks do for a handler that throws: 500, or a cut connection if something has left. */
function fail(res: ServerResponse): void {
  if (res.writableEnded) return;
  if (res.headersSent) {
    res.destroy();
    return;
  }
  for (const name of ["content-type", "content-encoding"]) res.removeHeader(name);
  res.statusCode = 500;
  res.setHeader("Content-Length", 0);
  res.end();
}

/** Routers in the manner of Connect take their mount off `url` and keep the whole elsewhere. */
function targetOf(req: IncomingMessage & { readonly originalUrl?: string }): string {
  return req.originalUrl ?? req.url ?? "/";
}
