/**
 * @module
 * One request on its way through the hooks of a protected Fastify route.
 *
 * Invariant: nothing is decided here. The body is looked at before validation can change it, the protocol begins after
 * all other `preHandler` hooks, and the answer is captured before all other `onSend` hooks.
 */
import type {
  FastifyReply,
  FastifyRequest,
  onErrorHookHandler,
  onSendHookHandler,
  preHandlerHookHandler,
  preParsingHookHandler,
  preValidationHookHandler,
} from "fastify";
import { type Awaitable, whenDone } from "../core/awaitable.js";
import { attachWork } from "../core/work.js";
import type { WholeAnswer } from "./answer.js";
import type { ReadAhead } from "./asking.js";
import type { Exchange } from "./exchange.js";
import { isTakenByParser, linesOfRequest, parsedBody, unparsedBody } from "./fastify-body.js";
import { setAnswer } from "./fastify-headers.js";
import {
  captureReply,
  cut,
  endOf,
  noticeError,
  onSend,
  type ReplyCapture,
  release,
  replaceWith,
} from "./fastify-reply.js";
import { clientLeft } from "./node-exchange.js";
import type { BodyReading, HttpAnswering, HttpRequest } from "./port.js";

/** A route, as it is protected. */
export interface Protection {
  readonly exchange: Exchange<FastifyRequest>;
  /** Its pattern, mount included. */
  readonly url: string | undefined;
}

export interface ProtectionHooks {
  readonly preParsing: preParsingHookHandler;
  readonly preValidation: preValidationHookHandler;
  readonly preHandler: preHandlerHookHandler;
  readonly onSend: onSendHookHandler;
  readonly onError: onErrorHookHandler;
}

/** What is known of a request so far. */
interface Passage {
  /** A request may pass the hooks of several registrations, but one of them protects it. */
  readonly owner: FindProtection;
  readonly exchange: Exchange<FastifyRequest>;
  readonly asked: HttpRequest<FastifyRequest>;
  ahead: ReadAhead | undefined;
  capture: ReplyCapture | undefined;
  /** Sent in place of the handler's answer. */
  sent: WholeAnswer | undefined;
}

/** The protection of the route that answers a request, if it is protected here. */
export type FindProtection = (request: FastifyRequest) => Protection | undefined;

type ReadBody = (request: FastifyRequest, maxBytes: number) => Awaitable<BodyReading>;

const PASSAGE = Symbol("oncekey.passage");

interface Passing {
  [PASSAGE]?: Passage;
}

export function protectionHooks(find: FindProtection): ProtectionHooks {
  const passageOf = (request: FastifyRequest & Passing): Passage | undefined =>
    request[PASSAGE]?.owner === find ? request[PASSAGE] : undefined;
  return {
    preParsing(request, reply, payload, done) {
      const passage =
        payload === request.raw && isTakenByParser(request)
          ? enter(find, request, reply, unparsedBody)
          : undefined;
      if (passage === undefined) done(null, payload);
      else readAhead(passage, () => done(null, payload));
    },
    preValidation(request, reply, done) {
      if (passageOf(request) !== undefined) return done();
      const passage = enter(find, request, reply, parsedBody);
      if (passage === undefined) done();
      else readAhead(passage, done);
    },
    preHandler(request, reply, done) {
      const passage = passageOf(request);
      if (passage === undefined) done();
      else begin(passage, request, reply, done);
    },
    onSend(request, reply, payload, done) {
      const passage = passageOf(request);
      if (passage?.capture !== undefined) return onSend(passage.capture, payload, done);
      // Fastify has given bytes a type that they did not have.
      if (passage?.sent !== undefined && !hasType(passage.sent)) reply.removeHeader("content-type");
      done();
    },
    onError(request, _reply, error, done) {
      const capture = passageOf(request)?.capture;
      if (capture !== undefined) noticeError(capture, error);
      done();
    },
  };
}

function enter(
  find: FindProtection,
  request: FastifyRequest & Passing,
  reply: FastifyReply,
  body: ReadBody,
): Passage | undefined {
  const protection = find(request);
  if (protection?.exchange.protects(request.method) !== true) return undefined;
  const { exchange, url } = protection;
  const asked = httpRequest(request, reply, url, body);
  const passage: Passage = {
    owner: find,
    exchange,
    asked,
    ahead: undefined,
    capture: undefined,
    sent: undefined,
  };
  request[PASSAGE] = passage;
  return passage;
}

function readAhead(passage: Passage, then: () => void): void {
  void whenDone(passage.exchange.readAhead(passage.asked), (ahead) => {
    passage.ahead = ahead;
    then();
  });
}

function begin(passage: Passage, request: FastifyRequest, reply: FastifyReply, done: Done): void {
  const { exchange, asked, ahead } = passage;
  const answering: HttpAnswering = {
    pass: done,
    send(answer) {
      passage.sent = answer;
      reply.send(setAnswer(reply, answer) ?? undefined);
    },
    start(begun, capturing) {
      const capture = captureReply(reply, capturing);
      passage.capture = capture;
      attachWork(request, begun);
      done();
      return whenDone(endOf(capture), (answer) => ({ answer, before: capture.before }));
    },
    release() {
      if (passage.capture !== undefined) release(passage.capture);
    },
    replaceWith: (answer) => passage.capture !== undefined && replaceWith(passage.capture, answer),
    cut() {
      if (passage.capture !== undefined) cut(passage.capture);
    },
  };
  void whenDone(exchange.handle(asked, answering, ahead), nothing, (error) => {
    if (passage.capture === undefined) done(error as Error);
    else request.log.error({ err: error }, "The answer could not be let go");
  });
}

function nothing(): void {}

type Done = (error?: Error) => void;

function httpRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  route: string | undefined,
  body: ReadBody,
): HttpRequest<FastifyRequest> {
  let left: AbortSignal | undefined;
  return {
    carrier: request,
    method: request.method,
    target: request.originalUrl,
    route,
    lines: (name) => linesOfRequest(request, name),
    body: (maxBytes) => body(request, maxBytes),
    left() {
      left ??= clientLeft(reply.raw);
      return left;
    },
  };
}

function hasType({ headers }: WholeAnswer): boolean {
  return headers.some(([name]) => name.toLowerCase() === "content-type");
}
