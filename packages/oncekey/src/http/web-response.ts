/**
 * @module
 * Captures what a handler answers with a web `Response`, while it passes, and holds back its end. Shared by the
 * adapters of every framework that answers with one.
 *
 * Invariant: the caller gets its response as soon as some of it may leave, and once. How a body passes is left
 * to `stream-capture.ts`.
 */
import { unreachable } from "../core/errors.js";
import { type CapturedAnswer, type HeaderLine, SHARED_LISTS, type WholeAnswer } from "./answer.js";
import type { Capturing } from "./port.js";
import { type BodyEnding, type ChunkSink, captureStream, webSource } from "./stream-capture.js";

/** Whoever called the handler. It gets one of the two. */
export interface Caller {
  answer(response: Response): void;
  fail(error: unknown): void;
}

const NOTHING = new Uint8Array(0);

export interface WebCapture {
  /** Settles when the answer is whole, or never will be. Never rejects. */
  readonly ended: Promise<CapturedAnswer>;
  /** Lets go what is held. */
  release(): void;
  /** Answers with this instead. Says `false`, and does nothing, if something has left already. */
  replaceWith(response: Response): boolean;
  /** Breaks off what has begun to leave. */
  cut(): void;
}

/** @throws TypeError if `response` is none, or its body was read before. */
export function captureWebResponse(response: Response, capturing: Capturing, caller: Caller): WebCapture {
  const { status, body } = response;
  const headers = linesOf(response.headers);
  if (body !== null) return captureBody(response, body, capturing, caller);
  return captureHeld({ kind: "answered", status, headers, body: NOTHING }, caller, () => {
    caller.answer(capturing.headers.length === 0 ? response : madeAnew(response, null, capturing));
  });
}

/** What a handler threw: `answer` is what its framework makes of that, where it is known. */
export function captureThrown(thrown: unknown, answer: WholeAnswer | undefined, caller: Caller): WebCapture {
  const captured: CapturedAnswer =
    answer === undefined
      ? { kind: "aborted", status: undefined, thrown }
      : { kind: "answered", ...answer, thrown };
  return captureHeld(captured, caller, () => caller.fail(thrown));
}

function captureHeld(answer: CapturedAnswer, caller: Caller, release: () => void): WebCapture {
  return {
    ended: Promise.resolve(answer),
    release,
    replaceWith(other) {
      caller.answer(other);
      return true;
    },
    cut: release,
  };
}

function captureBody(
  response: Response,
  body: ReadableStream<unknown>,
  capturing: Capturing,
  caller: Caller,
): WebCapture {
  const sink = passingSink(
    (stream) => caller.answer(madeAnew(response, stream, capturing)),
    () => capture.leave(),
  );
  const headers = linesOf(response.headers);
  const capture = captureStream(webSource(body), sink, {
    ...capturing,
    declaredLength: lengthOf(response.headers),
    endless: response.headers.get("content-type")?.startsWith("text/event-stream") ?? false,
  });
  let ending: BodyEnding | undefined;
  return {
    ended: capture.ended.then((it) => {
      ending = it;
      return answerOf(it, response.status, headers);
    }),
    release() {
      if (capture.flows()) capture.release();
      else if (ending?.kind === "whole") caller.answer(madeAnew(response, ending.body, capturing));
      else caller.fail(ending?.kind === "broken" ? ending.error : undefined);
    },
    replaceWith(other) {
      if (capture.flows()) return false;
      caller.answer(other);
      return true;
    },
    cut: () => capture.cut(new Error("The answer must not look complete")),
  };
}

function answerOf(ending: BodyEnding, status: number, headers: readonly HeaderLine[]): CapturedAnswer {
  switch (ending.kind) {
    case "whole":
      return { kind: "answered", status, headers, body: ending.body };
    case "broken":
      return { kind: "aborted", status, thrown: ending.error };
    case "outgrown":
      return { kind: "outgrown", status };
    default:
      return unreachable(ending);
  }
}

/** @param begin gets the body that the client reads, and `leave` is called when it stops reading. */
function passingSink(begin: (stream: ReadableStream<Uint8Array>) => void, leave: () => void): ChunkSink {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let wake = (): void => {};
  return {
    begin() {
      const stream = new ReadableStream<Uint8Array>({
        start(its) {
          controller = its;
        },
        pull: () => wake(),
        cancel() {
          leave();
          wake();
        },
      });
      begin(stream);
    },
    push: (chunk) => controller?.enqueue(chunk),
    room() {
      if ((controller?.desiredSize ?? 0) > 0) return undefined;
      return new Promise((resolve) => {
        wake = resolve;
      });
    },
    end: () => controller?.close(),
    fail: (error) => controller?.error(error),
  };
}

function madeAnew(
  { status, statusText, headers }: Response,
  content: Content,
  capturing: Capturing,
): Response {
  const all = new Headers(headers);
  // A stream that turned out short goes out as bytes: servers add their length, which may not stand beside a coding of transfer
  // (RFC 9112 §6.2).
  if (content instanceof Uint8Array) all.delete("transfer-encoding");
  for (const [name, value] of capturing.headers) all.set(name, value);
  return new Response(contentOf(content), { status, statusText, headers: all });
}

/** `answer` beside what outer layers have set. */
export function responseOf({ status, headers, body }: WholeAnswer, before: readonly HeaderLine[]): Response {
  const all = new Headers();
  for (const [name, value] of before) all.append(name, value);
  const given = new Set<string>();
  for (const [spelled, value] of headers) {
    const name = spelled.toLowerCase();
    if (given.has(name) || SHARED_LISTS.has(name)) all.append(name, value);
    else all.set(name, value);
    given.add(name);
  }
  return new Response(contentOf(body), { status, headers: all });
}

type Content = ReadableStream<Uint8Array> | Uint8Array | null | undefined;

/** Servers give a body a type even if it is empty, and a 204 may not have one at all. */
function contentOf(content: Content): ConstructorParameters<typeof Response>[0] {
  if (!(content instanceof Uint8Array)) return content ?? null;
  return content.byteLength === 0 ? null : (content as Uint8Array<ArrayBuffer>);
}

/** Each name once, as the platform joins its lines, except `Set-Cookie`. */
export function linesOf(headers: Headers): HeaderLine[] {
  return [...headers];
}

function lengthOf(headers: Headers): number | undefined {
  const length = headers.get("content-length");
  return length !== null && /^\d+$/.test(length) ? Number(length) : undefined;
}
