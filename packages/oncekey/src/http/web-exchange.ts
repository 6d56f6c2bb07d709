/**
 * @module
 * The port of the exchange for every framework that answers with a web `Response`.
 *
 * Invariant: nothing is decided here. The caller gets its response as soon as some of it may leave; what has to
 * happen after that goes on by itself. Holding the answer is left to `web-response.ts`, and what a handler is to
 * the adapter of the framework.
 */
import { whenDone } from "../core/awaitable.js";
import { configurationError } from "../core/errors.js";
import type { Begun } from "../core/work.js";
import type { HeaderLine, WholeAnswer } from "./answer.js";
import { isResponse } from "./control-flow.js";
import type { Exchange } from "./exchange.js";
import type { Capturing, HttpAnswering, HttpRequest } from "./port.js";
import {
  type Caller,
  captureThrown,
  captureWebResponse,
  responseOf,
  type WebCapture,
} from "./web-response.js";

/** What only the framework knows of a handler. `P` is what it gives where it is not protected. */
export interface WebHandling<P> {
  readonly pass: () => P | Promise<P>;
  readonly start: (begun: Begun) => Response | Promise<Response>;
  /** The lines that outer layers have set so far. */
  readonly before: () => readonly HeaderLine[];
  /** What was thrown and has become the answer of `start`, where the framework tells. */
  readonly thrown?: () => unknown;
  /** The answer that the framework makes of something thrown, where that is known. */
  readonly meaningOf?: (thrown: unknown) => WholeAnswer | undefined;
}

/** Puts one request to `exchange`. Rejects with what the handler throws. */
export function answerWeb<C, P>(
  exchange: Exchange<C>,
  request: HttpRequest<C>,
  handling: WebHandling<P>,
): Promise<Response | P> {
  return new Promise((resolve, reject) => {
    const caller: Caller = { answer: resolve, fail: reject };
    let before: readonly HeaderLine[] = [];
    let capture: WebCapture | undefined;
    const answering: HttpAnswering = {
      pass: () => resolve((async () => handling.pass())()),
      send: (answer) => resolve(responseOf(answer, handling.before())),
      async start(begun, capturing) {
        before = handling.before();
        capture = await captureHandler(handling, begun, capturing, caller);
        const answer = await capture.ended;
        return { answer: { thrown: handling.thrown?.(), ...answer }, before };
      },
      release: () => capture?.release(),
      replaceWith: (answer) => capture?.replaceWith(responseOf(answer, before)) ?? false,
      cut: () => capture?.cut(),
    };
    // Nobody is there any more if nothing has been given by then.
    void whenDone(
      exchange.handle(request, answering),
      () => resolve(new Response(null, CLIENT_LEFT)),
      reject,
    );
  });
}

/** Nobody sees it but logs, which know it by this number. */
const CLIENT_LEFT = { status: 499 };

/** What was returned in place of an answer has to be told apart from an answer that broke. */
function checked(returned: unknown): Response {
  if (isResponse(returned)) return returned;
  const problem = 'the handler must return a Response, as in (request) => new Response("done")';
  throw configurationError("Handler", [problem]);
}

async function captureHandler(
  { start, meaningOf }: WebHandling<unknown>,
  begun: Begun,
  capturing: Capturing,
  caller: Caller,
): Promise<WebCapture> {
  try {
    return captureWebResponse(checked(await start(begun)), capturing, caller);
  } catch (thrown) {
    return captureThrown(thrown, meaningOf?.(thrown), caller);
  }
}
