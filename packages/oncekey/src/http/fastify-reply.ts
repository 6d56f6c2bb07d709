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
import type { Awaitable } from "../core/awaitable.js";
import { unreachable } from "../core/errors.js";
import type { CapturedAnswer, HeaderLine, WholeAnswer } from "./answer.js";
import { linesOf, needsBytes, type ReplyHeaders, restoreHead, setAnswer } from "./fastify-headers.js";
import { streamPayload } from "./fastify-stream.js";
import { watchConnection } from "./node-connection.js";
import { hasContent, headerLines } from "./node-headers.js";
import { captureNodeResponse } from "./node-response.js";
import type { Capturing } from "./port.js";
import type { BodyEnding } from "./stream-capture.js";
import { bytesOfText } from "./text-bytes.js";

/** Goes on with the next hook: with an error, with this payload, or with the one there was. */
type SendOn = (error?: Error | null, payload?: unknown) => void;

/** What there is to let go of an answer that is no longer Fastify's alone: a stream, or a response written to by hand. */
interface Held {
  release(): void;
  replaceWith(answer: WholeAnswer): boolean;
  cut(): void;
}

/** One reply that is being captured. Functions of this module read and change it; others only hold it. */
export interface ReplyCapture {
  readonly reply: FastifyReply;
  readonly capturing: Capturing;
  readonly before: readonly HeaderLine[];
  /** `open`: the handler has not answered. `taken`: it has, and nothing else counts. `left`: it is let go. */
  stage: "open" | "taken" | "left";
  status: number;
  headers: ReplyHeaders;
  thrown: unknown;
  /** An answer that was given whole, and the way on to the next hook. */
  payload: unknown;
  sendOn: SendOn | undefined;
  held: Held | undefined;
  answer: CapturedAnswer | undefined;
  /** Hears of the answer, if somebody waits for it. */
  heard: ((answer: CapturedAnswer) => void) | undefined;
}

const NO_HEADERS: ReplyHeaders = {};

export function captureReply(reply: FastifyReply, capturing: Capturing): ReplyCapture {
  const capture: ReplyCapture = {
    reply,
    capturing,
    before: linesOf(reply.getHeaders()),
    stage: "open",
    status: 200,
    headers: NO_HEADERS,
    thrown: undefined,
    payload: undefined,
    sendOn: undefined,
    held: undefined,
    answer: undefined,
    heard: undefined,
  };
  reply.hijack = () => hijack(capture);
  for (const [name, value] of capturing.headers) reply.header(name, value);
  return capture;
}

/** The answer, at once if it is whole or never will be. Never rejects. */
export function endOf(capture: ReplyCapture): Awaitable<CapturedAnswer> {
  if (capture.answer !== undefined) return capture.answer;
  const { raw } = capture.reply;
  return new Promise((resolve) => {
    const unwatch = watchConnection(raw, (by) => {
      // The handler has hung up. A client that left will find the answer when it comes back.
      if (by === "us" && capture.stage === "open") abort(capture);
    });
    const onFinish = (): void => noticeSent(capture);
    raw.once("finish", onFinish);
    capture.heard = (answer) => {
      unwatch();
      raw.off("finish", onFinish);
      resolve(answer);
    };
  });
}

function settle(capture: ReplyCapture, answer: CapturedAnswer): void {
  if (capture.answer !== undefined) return;
  capture.answer = answer;
  capture.heard?.(answer);
}

/** The framework makes an answer of this error. */
export function noticeError(capture: ReplyCapture, error: unknown): void {
  if (capture.stage === "open") capture.thrown = error;
}

/** Lets go what is held back. */
export function release(capture: ReplyCapture): void {
  const { held, sendOn, payload } = capture;
  capture.stage = "left";
  if (held !== undefined) held.release();
  else sendOn?.(null, payload);
}

/** Answers with this instead; `false`, and nothing, if something has left already. */
export function replaceWith(capture: ReplyCapture, answer: WholeAnswer): boolean {
  const { reply, before, held, sendOn, stage } = capture;
  if (stage !== "taken") return false;
  if (held !== undefined) {
    if (!held.replaceWith(answer)) return false;
  } else {
    restoreHead(reply, answer.status, NO_HEADERS);
    for (const [name, value] of before) reply.header(name, value);
    sendOn?.(null, setAnswer(reply, answer));
  }
  capture.stage = "left";
  return true;
}

export function cut(capture: ReplyCapture): void {
  capture.stage = "left";
  if (capture.held === undefined) capture.reply.raw.destroy();
  else capture.held.cut();
}

/** A payload is on its way. */
export function onSend(capture: ReplyCapture, payload: unknown, on: SendOn): void {
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
  else if (typeof content === "string") takeWhole(capture, bytesOfText(content), content, on);
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

function takeWhole(capture: ReplyCapture, bytes: Uint8Array, payload: unknown, on: SendOn): void {
  const { status, thrown, capturing } = capture;
  const headers = linesOf(capture.headers);
  holdWhole(capture, typeof payload === "string" && needsBytes(headers) ? Buffer.from(bytes) : payload, on);
  const content = hasContent(status) ? bytes : EMPTY;
  const body = content.byteLength > capturing.maxResultBytes ? undefined : content;
  settle(capture, { kind: "answered", status, headers, body, thrown });
}

function holdWhole(capture: ReplyCapture, payload: unknown, on: SendOn): void {
  capture.held = undefined;
  capture.payload = payload;
  capture.sendOn = on;
}

function takeStream(capture: ReplyCapture, payload: unknown, on: SendOn): void {
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
function reopen(capture: ReplyCapture): void {
  if (!capture.reply.raw.destroyed) capture.stage = "open";
}

function streamEnded(capture: ReplyCapture, ending: BodyEnding, flows: boolean, on: SendOn): void {
  const { status, headers, thrown } = capture;
  switch (ending.kind) {
    case "whole": {
      const { body } = ending;
      if (flows) settle(capture, { kind: "answered", status, headers: linesOf(headers), body, thrown });
      else takeWhole(capture, body ?? EMPTY, body?.byteLength ? Buffer.from(body) : null, on);
      break;
    }
    case "outgrown":
      holdWhole(capture, null, on);
      settle(capture, { kind: "outgrown", status });
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

function abort(capture: ReplyCapture): void {
  const { reply, thrown } = capture;
  capture.stage = "taken";
  const status = reply.raw.headersSent ? reply.raw.statusCode : undefined;
  settle(capture, { kind: "aborted", status, thrown });
}

/** From here on the handler writes to the raw response, and Fastify hears no more of it. */
function hijack(capture: ReplyCapture): FastifyReply {
  const { reply, capturing, stage } = capture;
  Reflect.deleteProperty(reply, "hijack");
  if (stage === "open" && !reply.raw.headersSent) {
    for (const [name, value] of capturing.headers) reply.raw.setHeader(name, value);
    const node = captureNodeResponse(reply.raw, capturing);
    capture.stage = "taken";
    capture.held = node;
    void node.ended.then((answer) => settle(capture, answer));
  }
  return reply.hijack();
}

/** The handler has written to the raw response without a word, and it has left: what it was is known from the head alone. */
function noticeSent(capture: ReplyCapture): void {
  if (capture.stage !== "open") return;
  const { raw } = capture.reply;
  capture.stage = "left";
  const { statusCode: status } = raw;
  settle(capture, {
    kind: "answered",
    status,
    headers: headerLines(raw),
    body: undefined,
    thrown: capture.thrown,
  });
}
