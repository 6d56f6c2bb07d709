/**
 * @module
 * The port of the exchange for every framework that hands out Node's own request and response.
 *
 * Invariant: nothing is decided here. Reading the body is left to `node-request.ts`, holding the answer to
 * `node-response.ts`, and what a carrier, a route and a handler are to the adapter of the framework.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { attachWork } from "../core/work.js";
import { connectionGone, watchConnection } from "./node-connection.js";
import { sendAnswer } from "./node-headers.js";
import { fieldLines, peekBody } from "./node-request.js";
import { captureNodeResponse, type NodeCapture } from "./node-response.js";
import type { HttpAnswering, HttpRequest } from "./port.js";

/** What only the framework knows of a request. */
export type NodeRoute<C> = Pick<HttpRequest<C>, "carrier" | "target" | "route">;

export function nodeRequest<C>(
  req: IncomingMessage,
  res: ServerResponse,
  { carrier, target, route }: NodeRoute<C>,
): HttpRequest<C> {
  let left: AbortSignal | undefined;
  return {
    carrier,
    target,
    route,
    method: req.method ?? "",
    lines: (name) => fieldLines(req, name),
    body: (maxBytes) => peekBody(req, maxBytes),
    left() {
      left ??= clientLeft(res);
      return left;
    },
  };
}

/**
 * @param handle starts the handler, and deals with its failure.
 * @param thrown what the handler threw instead of answering, where the adapter can tell.
 */
export function nodeAnswering(
  res: ServerResponse,
  carrier: object,
  handle: () => void,
  thrown: () => unknown = () => undefined,
): HttpAnswering {
  let capture: NodeCapture | undefined;
  return {
    pass: handle,
    send: (answer) => sendAnswer(res, answer),
    async start(begun, capturing) {
      for (const [name, value] of capturing.headers) res.setHeader(name, value);
      capture = captureNodeResponse(res, capturing);
      attachWork(carrier, begun);
      handle();
      const answer = await capture.ended;
      const cause = thrown();
      return {
        answer: cause === undefined || answer.kind === "outgrown" ? answer : { ...answer, thrown: cause },
        before: capture.headersBefore,
      };
    },
    release: () => capture?.release(),
    replaceWith: (answer) => capture?.replaceWith(answer) ?? false,
    cut: () => capture?.cut(),
  };
}

/** `close` of a response does not tell a client that left from one that got its answer. */
export function clientLeft(res: ServerResponse): AbortSignal {
  const left = new AbortController();
  if (connectionGone(res)) left.abort();
  const stop = watchConnection(res, () => left.abort());
  res.once("finish", stop);
  return left.signal;
}
