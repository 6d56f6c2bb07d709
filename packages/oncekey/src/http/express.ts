/**
 * @module
 * `oncekey/http/express`: a middleware for Express 4 and 5.
 *
 * Invariant: translation only. Put it on the route, after authentication and before whatever changes the
 * answer; compression goes around it.
 *
 * Under `app.use` Express does not know the route yet, so the operation is named by the actual path unless
 * the `operation` option names it; so is a mount with parameters, whose pattern Express never tells.
 */
import type { NextFunction, Request, Response } from "express";
import { whenDone } from "../core/awaitable.js";
import type { Idempotency } from "../core/idempotency.js";
import { createExchange } from "./exchange.js";
import { nodeAnswering, nodeRequest } from "./node-exchange.js";
import { withoutNames } from "./operation.js";
import type { HttpArguments, HttpOptions } from "./options.js";

export type { HttpOptions, ScopedHttpOptions } from "./options.js";

/** Generic, so that it takes no part in inferring the types of the route it stands on. */
export type IdempotentHandler = <P, B, Q, L extends Record<string, unknown>>(
  req: Request<P, unknown, B, Q, L>,
  res: Response,
  next: NextFunction,
) => void;

/**
 * Makes what comes after it on the route run once per key, and gives repeats the first answer.
 *
 * @example app.post("/payments", idempotent(idempotency, { scope: (req) => req.user?.id }), charge);
 * @throws OncekeyError `CONFIGURATION_INVALID` with everything that is wrong with the options.
 */
export function idempotent<const I extends Idempotency>(
  idempotency: I,
  ...[options]: HttpArguments<I, Request>
): IdempotentHandler {
  const known: HttpOptions<Request> = options === undefined ? {} : options;
  const exchange = createExchange(idempotency, known);
  return (given, res, next) => {
    const req = given as unknown as Request;
    const request = nodeRequest(req, res, { carrier: req, target: req.originalUrl, route: patternOf(req) });
    void whenDone(exchange.handle(request, nodeAnswering(res, req, next)), nothing, next);
  };
}

function nothing(): void {}

/** A path may also be a list or a regular expression. The mount is the path that was sent, without a pattern. */
function patternOf({ baseUrl, route }: Request): string | undefined {
  const path: unknown = route?.path;
  if (path === undefined) return undefined;
  const pattern = typeof path === "string" ? path : [path].flat().map(textOf).join(",");
  return withoutNames(baseUrl) + pattern;
}

function textOf(path: unknown): string {
  return path instanceof RegExp ? withoutNames(String(path)) : String(path);
}
