/**
 * @module
 * The handler's side of a captured response: what each of its calls does while the capture is open or frozen.
 *
 * Invariant: to the handler the response behaves as it would bare (`headersSent`, thrown errors, callbacks,
 * events), except that after its end nothing has an effect until the answer is let go.
 *
 * `writeHead` is passed on with the first byte, not before, so that an answer that has not left can still be
 * replaced and outer layers see one head. Until then a placeholder in `_header` tells the handler that it is made.
 */
import type { ServerResponse } from "node:http";
import { types } from "node:util";
import {
  abort,
  type Callback,
  type Capture,
  type Chunk,
  conclude,
  cutOff,
  type Held,
  letThrough,
  type Methods,
  outgrow,
  sendable,
  show,
  startDrain,
} from "./node-capture.js";
import { connectionGone } from "./node-connection.js";
import { hasContent, setFields } from "./node-headers.js";

const encoder = new TextEncoder();

/** What `_header` holds once the handler has made its head and nothing has left. */
const HEAD_MADE = "made";

/** Puts the capture between the handler and `res`. */
export function wrapMethods(capture: Capture): void {
  const { own } = capture;
  own.write = (chunk, encoding?: BufferEncoding | Callback, callback?: Callback) =>
    typeof encoding === "function"
      ? write(capture, chunk, undefined, encoding)
      : write(capture, chunk, encoding, callback);
  own.end = (chunk?: Chunk | Callback, encoding?: BufferEncoding | Callback, callback?: Callback) => {
    if (typeof chunk === "function") return end(capture, undefined, undefined, chunk);
    if (typeof encoding === "function") return end(capture, chunk, undefined, encoding);
    return end(capture, chunk, encoding, callback);
  };
  own.writeHead = (...given) => writeHead(capture, given);
  own.flushHeaders = () => flushHeaders(capture);
  own.destroy = (error) => destroy(capture, error);
}

function writeHead(capture: Capture, given: Parameters<Methods["writeHead"]>): ServerResponse {
  const { res, own, real } = capture;
  if (capture.passing) return real.writeHead.apply(res, given);
  if (isOver(capture)) return writeHeadLate(capture);
  if (capture.stage === "released") return real.writeHead.apply(res, given);
  if (capture.stage === "frozen") return res;
  if (capture.head !== "none") {
    throw nodeError(Error, "ERR_HTTP_HEADERS_SENT", "Cannot write headers after they are sent to the client");
  }
  setHead(res, given);
  capture.head = capture.making ? "implicit" : "explicit";
  const length = Number(res.getHeader("content-length") ?? Number.NaN);
  capture.declaredLength = Number.isSafeInteger(length) ? length : undefined;
  capture.bodyless = res.req.method === "HEAD" || !hasContent(res.statusCode) || length === 0;
  own._header = HEAD_MADE;
  return res;
}

/** @throws what Node would, and as early: by the time the head is sent the handler is past hearing of it. */
function setHead(res: ServerResponse, [status, message, fields]: Parameters<Methods["writeHead"]>): void {
  const code = Math.trunc(status);
  if (!(code >= 100 && code <= 999)) {
    throw nodeError(RangeError, "ERR_HTTP_INVALID_STATUS_CODE", `Invalid status code: ${status}`);
  }
  res.statusCode = code;
  if (typeof message === "string") res.statusMessage = message;
  if (/[^\t\x20-\x7e\x80-\xff]/.test(res.statusMessage)) {
    throw nodeError(TypeError, "ERR_INVALID_CHAR", "Invalid character in statusMessage");
  }
  const lines = typeof message === "string" ? fields : (message ?? fields);
  if (lines) setFields(res, lines);
}

/** The handler has ended, and its answer was let go or replaced: only what outer layers do still counts. */
function isOver({ stage, endCalled }: Capture): boolean {
  return stage === "released" && endCalled;
}

/** An outer layer that ends the response later than we do (one that saves a session first) makes the head now. */
function writeHeadLate({ res, real, final }: Capture): ServerResponse {
  if (res.headersSent) return res;
  Object.assign(res, final);
  return real.writeHead.call(res, res.statusCode);
}

/** As Node does for a handler that writes without a head, and by the same way, so that inner layers hear of it. */
function makeHead(capture: Capture): void {
  if (capture.head !== "none") return;
  capture.making = true;
  try {
    capture.own.writeHead(capture.res.statusCode);
  } finally {
    capture.making = false;
  }
}

function write(capture: Capture, chunk: Chunk, encoding?: BufferEncoding, callback?: Callback): boolean {
  const { res, real } = capture;
  if (!isChunk(chunk)) return real.write.call(res, chunk, encoding, callback);
  if (isOver(capture)) return taken(callback);
  if (capture.stage === "released") return real.write.call(res, chunk, encoding, callback);
  if (capture.stage === "open") makeHead(capture);
  if (capture.stage === "frozen" || capture.bodyless) return taken(callback);
  return accept(capture, heldOf(chunk, encoding), callback);
}

/** Keeps a chunk of the body, and passes it on unless it has to wait. */
function accept(capture: Capture, held: Held, callback?: Callback): boolean {
  const { res, real, body, declaredLength, options } = capture;
  body.add(held.bytes);
  const complete = declaredLength !== undefined && body.size() >= declaredLength;
  if (connectionGone(res)) {
    if (complete) conclude(capture);
    else if (!body.overflown()) startDrain(capture);
    else if (options.hold === "everything") outgrow(capture);
    else cutOff(capture);
    return taken(callback);
  }
  if (!complete && options.hold === "end") {
    const { chunk = held.chunk, encoding } = sendable(capture, held);
    capture.awaitsDrain = !letThrough(capture, () => real.write.call(res, chunk, encoding, callback));
    return !capture.awaitsDrain;
  }
  capture.held.push(held);
  if (complete) conclude(capture);
  else if (body.overflown() || isEventStream(res)) outgrow(capture);
  return taken(callback);
}

function end(
  capture: Capture,
  chunk?: Chunk,
  encoding?: BufferEncoding,
  callback?: Callback,
): ServerResponse {
  const { res, real } = capture;
  const passes = capture.stage === "released" && !capture.endCalled;
  if (passes || (chunk && !isChunk(chunk))) return real.end.call(res, chunk, encoding, callback);
  if (capture.stage === "open") {
    makeHead(capture);
    if (chunk && !capture.bodyless) endWith(capture, chunk, encoding);
  }
  capture.endCalled = true;
  show(res, "writableEnded", true);
  if (callback) whenFinished(res, callback);
  if (capture.stage === "open") conclude(capture);
  return res;
}

/** After a disconnect Node never finishes a response. */
function whenFinished(res: ServerResponse, callback: Callback): void {
  if (res.writableFinished || connectionGone(res)) process.nextTick(callback);
  else res.once("finish", callback);
}

/** The last chunk goes with the end, or before it where the head has left: only the end is held back. */
function endWith(capture: Capture, chunk: Chunk, encoding?: BufferEncoding): void {
  const held = heldOf(chunk, encoding);
  if (capture.headLeft) {
    accept(capture, held);
    return;
  }
  capture.body.add(held.bytes);
  capture.held.push(held);
}

function flushHeaders(capture: Capture): void {
  const { res, real } = capture;
  if (capture.stage === "released") real.flushHeaders.call(res);
  if (capture.stage !== "open") return;
  makeHead(capture);
  capture.flushCalled = true;
  if (capture.options.hold === "everything") {
    if (isEventStream(res)) outgrow(capture);
  } else if (!capture.bodyless && !connectionGone(res)) {
    letThrough(capture, () => real.flushHeaders.call(res));
  }
}

function destroy(capture: Capture, error?: Error): ServerResponse {
  const { res, real } = capture;
  if (capture.stage === "frozen" && !connectionGone(res)) {
    capture.destroyLater = { error };
    return res;
  }
  if (capture.stage === "open" && !isTold(res, error)) {
    if (connectionGone(res) && capture.head !== "none") cutOff(capture);
    else abort(capture);
  }
  return real.destroy.call(res, error);
}

/** Since version 24 Node itself destroys responses that waited for their turn on a connection that is gone. */
function isTold(res: ServerResponse, error: NodeJS.ErrnoException | undefined): boolean {
  return connectionGone(res) && res.socket === null && error?.code === "ECONNRESET";
}

/** The chunk is kept, so the writer may go on. */
function taken(callback: Callback | undefined): true {
  if (callback) process.nextTick(callback);
  return true;
}

function isChunk(chunk: unknown): chunk is Chunk {
  return typeof chunk === "string" || types.isUint8Array(chunk);
}

/** Bytes are copied, because the handler may use its buffer again. */
function heldOf(chunk: Chunk, encoding: BufferEncoding = "utf8"): Held {
  if (typeof chunk !== "string") {
    const bytes = new Uint8Array(chunk);
    return { chunk: bytes, encoding: undefined, bytes };
  }
  // Not out of Buffer's pool: the bytes may be kept as long as a record.
  const bytes = /^utf-?8$/i.test(encoding) ? encoder.encode(chunk) : Buffer.from(chunk, encoding);
  return { chunk, encoding, bytes };
}

function isEventStream(res: ServerResponse): boolean {
  return String(res.getHeader("content-type")).startsWith("text/event-stream");
}

/** An error as Node itself throws it in this place. */
function nodeError(type: typeof Error, code: string, message: string): Error {
  return Object.assign(new type(message), { code });
}
