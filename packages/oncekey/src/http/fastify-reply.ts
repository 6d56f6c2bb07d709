/**
 * @module
 * Captures what a Fastify handler answers, at its own `onSend` hook and before any other, and holds back its end.
 *
 * Invariants:
 *
 * - An answer that is all there is frozen: a late throw, an error handler or a second `send` cannot alter it. Fastify
 *   itself only notices those once the answer has left.
 * - A stream passes at once; an error before its first byte is still the framework's to answer.
 * - What does not come by `onSend` (a hijacked reply, `reply.raw`) is captured as a Node response, or noticed when it
 *   has left.
 *
 * Later hooks see the answer as if nobody had held it, and see a replay too.
 */
import type { FastifyReply } from "fastify";
import { unreachable } from "../core/errors.js";
import type { CapturedAnswer, HeaderLine, WholeAnswer } from "./answer.js";
import { linesOf, type ReplyHeaders, restoreHead, setAnswer } from "./fastify-headers.js";
import { streamPayload } from "./fastify-stream.js";
import { watchConnection } from "./node-connection.js";
import { hasContent, headerLines } from "./node-headers.js";
import { captureNodeResponse } from "./node-response.js";
import type { Capturing } from "./port.js";
import type { BodyEnding } from "./stream-capture.js";

/** Goes on with the next hook: with an error, with this payload, or with the one there was. */
type SendOn = (error?: Error | null, payload?: unknown) => void;

export interface ReplyCapture {
  readonly before: readonly HeaderLine[];
  /** Settles when the answer is whole, or never will be. Never rejects. */
  readonly ended: Promise<CapturedAnswer>;
  /** A payload is on its way. */
  onSend(payload: unknown, on: SendOn): void;
  /** The framework makes an answer of this. */
  onError(error: unknown): void;
  /** The answer has left, seen or not. */
  onResponse(): void;
  release(): void;
  /** `false`, and nothing, if something has left already. */
  replaceWith(answer: WholeAnswer): boolean;
  cut(): void;
}

/** What there is to let go. */
interface Held {
  release(): void;
  replaceWith(answer: WholeAnswer): boolean;
  cut(): void;
}

interface Capture {
  readonly reply: FastifyReply;
  readonly capturing: Capturing;
  readonly before: readonly HeaderLine[];
  settle: (answer: CapturedAnswer) => void;
  /** `open`: the handler has not answered. `taken`: it has, and nothing else counts. `left`: it is let go. */
  stage: "open" | "taken" | "left";
  status: number;
  headers: ReplyHeaders;
  thrown: unknown;
  held: Held | undefined;
}

export function captureReply(reply: FastifyReply, capturing: Capturing): ReplyCapture {
  const before = linesOf(reply.getHeaders());
  const capture: Capture = {
    reply,
    capturing,
    before,
    settle: () => {},
    stage: "open",
    status: 200,
    headers: {},
    thrown: undefined,
    held: undefined,
  };
  const ended = new Promise<CapturedAnswer>((resolve) => {
    const unwatch = watchConnection(reply.raw, (by) => {
      // The handler has hung up. A client that left will find the answer when it comes back.
      if (by === "us" && capture.stage === "open") abort(capture);
    });
    capture.settle = (answer) => {
      unwatch();
      resolve(answer);
    };
  });
  reply.hijack = () => hijack(capture);
  for (const [name, value] of capturing.headers) reply.header(name, value);
  return {
    before,
    ended,
    onSend: (payload, on) => onSend(capture, payload, on),
    onError(error) {
      if (capture.stage === "open") capture.thrown = error;
    },
    onResponse: () => noticeSent(capture),
    release() {
      capture.stage = "left";
      capture.held?.release();
    },
    replaceWith(answer) {
      if (capture.stage !== "taken" || capture.held?.replaceWith(answer) !== true) return false;
      capture.stage = "left";
      return true;
    },
    cut() {
      capture.stage = "left";
      if (capture.held === undefined) reply.raw.destroy();
      else capture.held.cut();
    },
  };
}

function onSend(capture: Capture, payload: unknown, on: SendOn): void {
  const { reply, stage } = capture;
  if (stage === "left") {
    on();
    return;
  }
  if (stage === "taken") {
    // It is answered already: what comes after goes nowhere, and what that did to the head is undone.
    if (!reply.raw.headersSent) restoreHead(reply, capture.status, capture.headers);
    return;
  }
  const content = isResponse(payload) ? unwrapped(reply, payload) : payload;
  capture.stage = "taken";
  capture.status = reply.statusCode;
  capture.headers = reply.getHeaders();
  if (content === undefined || content === null) takeWhole(capture, EMPTY, null, on);
  else if (typeof content === "string") takeWhole(capture, Buffer.from(content), content, on);
  // A copy, because the handler may use its buffer again.
  else if (content instanceof Uint8Array) takeWhole(capture, new Uint8Array(content), content, on);
  else takeStream(capture, content, on);
}

const EMPTY = new Uint8Array(0);

function isResponse(payload: unknown): payload is Response {
  return typeof payload === "object" && Object.prototype.toString.call(payload) === "[object Response]";
}

/** As Fastify would do after the last hook. */
function unwrapped(reply: FastifyReply, { status, headers, body }: Response): unknown {
  reply.code(status);
  for (const [name, value] of headers) reply.header(name, value);
  return body;
}

function takeWhole(capture: Capture, bytes: Uint8Array, payload: unknown, on: SendOn): void {
  const { status, headers, thrown, capturing } = capture;
  hold(capture, payload, on);
  const content = hasContent(status) ? bytes : EMPTY;
  const body = content.byteLength > capturing.maxResultBytes ? undefined : content;
  capture.settle({ kind: "answered", status, headers: linesOf(headers), body, thrown });
}

function hold(capture: Capture, payload: unknown, on: SendOn): void {
  const { reply, before } = capture;
  capture.held = {
    release: () => on(null, payload),
    replaceWith(answer) {
      restoreHead(reply, answer.status, {});
      for (const [name, value] of before) reply.header(name, value);
      on(null, setAnswer(reply, answer));
      return true;
    },
    cut: () => void reply.raw.destroy(),
  };
}

function takeStream(capture: Capture, payload: unknown, on: SendOn): void {
  const { capturing, headers } = capture;
  const stream = streamPayload(payload, {
    ...capturing,
    declaredLength: lengthOf(headers["content-length"]),
    endless: String(headers["content-type"]).startsWith("text/event-stream"),
    onFlow: (body) => on(null, body),
    onBreak: () => reopen(capture),
  });
  capture.held = {
    release: stream.release,
    replaceWith: () => false,
    cut: () => stream.cut(new Error("The answer must not look complete")),
  };
  void stream.ended.then((ending) => streamEnded(capture, ending, stream.flows(), on));
}

function lengthOf(length: unknown): number | undefined {
  return /^\d+$/.test(String(length)) ? Number(length) : undefined;
}

/** Nothing of the stream has left, so the framework may still make another answer, of the error. */
function reopen(capture: Capture): void {
  if (!capture.reply.raw.destroyed) capture.stage = "open";
}

function streamEnded(capture: Capture, ending: BodyEnding, flows: boolean, on: SendOn): void {
  const { status, headers, thrown } = capture;
  switch (ending.kind) {
    case "whole": {
      const { body } = ending;
      if (flows) capture.settle({ kind: "answered", status, headers: linesOf(headers), body, thrown });
      else takeWhole(capture, body ?? EMPTY, body?.byteLength ? Buffer.from(body) : null, on);
      break;
    }
    case "outgrown":
      hold(capture, null, on);
      capture.settle({ kind: "outgrown", status });
      break;
    case "broken":
      if (flows && capture.stage === "taken") abort(capture);
      if (flows) break;
      capture.stage = "open";
      on(
        ending.error instanceof Error
          ? ending.error
          : new Error("The body broke off", { cause: ending.error }),
      );
      break;
    default:
      unreachable(ending);
  }
}

function abort(capture: Capture): void {
  const { reply, thrown } = capture;
  capture.stage = "taken";
  const status = reply.raw.headersSent ? reply.raw.statusCode : undefined;
  capture.settle({ kind: "aborted", status, thrown });
}

/** From here on the handler writes to the raw response, and Fastify hears no more of it. */
function hijack(capture: Capture): FastifyReply {
  const { reply, capturing, stage } = capture;
  Reflect.deleteProperty(reply, "hijack");
  if (stage === "open" && !reply.raw.headersSent) {
    for (const [name, value] of capturing.headers) reply.raw.setHeader(name, value);
    const node = captureNodeResponse(reply.raw, capturing);
    capture.stage = "taken";
    capture.held = node;
    void node.ended.then(capture.settle);
  }
  return reply.hijack();
}

/** The handler has written to the raw response without a word: what it was is known from the head alone. */
function noticeSent(capture: Capture): void {
  if (capture.stage !== "open") return;
  const { raw } = capture.reply;
  capture.stage = "left";
  const { statusCode: status } = raw;
  capture.settle({
    kind: "answered",
    status,
    headers: headerLines(raw),
    body: undefined,
    thrown: capture.thrown,
  });
}
