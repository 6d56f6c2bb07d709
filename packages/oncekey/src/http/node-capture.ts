/**
 * @module
 * The state of one captured Node response, and how it gets from open to frozen.
 *
 * Invariant: `settle` is called at most once, in the step from `open` to `frozen`, and what was frozen is what is let
 * go. What the handler calls is followed in `node-methods.ts`; letting go is in `node-response.ts`.
 */
import type { ServerResponse } from "node:http";
import type { Timer } from "../core/clock.js";
import type { CapturedAnswer, CaptureOptions, HeaderLine } from "./answer.js";
import { type BoundedBody, boundedBody } from "./bounded-body.js";
import { followPipes, type GoneBy, watchConnection } from "./node-connection.js";
import { type HeadFields, headerLines } from "./node-headers.js";

export type { CapturedAnswer, CaptureOptions as NodeCaptureOptions } from "./answer.js";

export type Chunk = string | Uint8Array;
export type Callback = (error?: Error | null) => void;

/** The methods that are wrapped, as Node implements them behind their overloads. */
export interface Methods {
  write(chunk: Chunk, encoding?: BufferEncoding, callback?: Callback): boolean;
  end(chunk?: Chunk, encoding?: BufferEncoding, callback?: Callback): ServerResponse;
  writeHead(status: number, message?: string | HeadFields, fields?: HeadFields): ServerResponse;
  flushHeaders(): void;
  destroy(error?: Error): ServerResponse;
}

/**
 * The head as it goes over the wire, and what `headersSent` is the getter of. Private in name only: Express,
 * Koa, on-headers and compression read it too.
 */
interface Rendered {
  _header: string | null;
}

/** What alters an answer besides `Methods`. */
const ALTERING = ["setHeader", "appendHeader", "setHeaders", "removeHeader", "addTrailers"] as const;

export interface Capture {
  readonly res: ServerResponse;
  /** `res` again, with what its type hides. */
  readonly own: Methods & Rendered;
  readonly real: Methods;
  readonly options: CaptureOptions;
  readonly headersBefore: readonly HeaderLine[];
  readonly body: BoundedBody;
  readonly settle: (answer: CapturedAnswer) => void;
  stage: "open" | "frozen" | "released";
  /** Who made the head, `writeHead` or the first write: Node frames the two differently. */
  head: "none" | "explicit" | "implicit";
  headLeft: boolean;
  /** The message is complete with its head. */
  bodyless: boolean;
  declaredLength: number | undefined;
  /** Node calls `writeHead` itself: to make a head that the handler did not make, and inside a real method. */
  making: boolean;
  passing: boolean;
  held: Held[];
  endCalled: boolean;
  flushCalled: boolean;
  /** The last write that was passed on asked to wait for `drain`. */
  awaitsDrain: boolean;
  destroyLater: { readonly error: Error | undefined } | undefined;
  drain: Timer | undefined;
  /** The head as it was when the answer was frozen. */
  final: Final | undefined;
  /** Takes off the sources that are still piped into the response. */
  unpipeAll: () => void;
  stopFollowing: () => void;
}

/** A chunk as the handler gave it, unless it could change meanwhile, and its bytes. */
export interface Held {
  readonly chunk: Chunk;
  readonly encoding: BufferEncoding | undefined;
  readonly bytes: Uint8Array;
}

/** What of a head stands outside its lines. */
type Final = Pick<ServerResponse, "statusCode" | "statusMessage">;

export function openCapture(
  res: ServerResponse,
  options: CaptureOptions,
): { capture: Capture; ended: Promise<CapturedAnswer> } {
  const own = res as unknown as Capture["own"];
  let settle: Capture["settle"] = () => {};
  const ended = new Promise<CapturedAnswer>((resolve) => {
    settle = resolve;
  });
  const capture: Capture = {
    res,
    own,
    real: {
      write: own.write,
      end: own.end,
      writeHead: own.writeHead,
      flushHeaders: own.flushHeaders,
      destroy: own.destroy,
    },
    options,
    headersBefore: headerLines(res),
    body: boundedBody(options.maxResultBytes),
    settle,
    stage: "open",
    head: "none",
    headLeft: false,
    bodyless: false,
    declaredLength: undefined,
    making: false,
    passing: false,
    held: [],
    endCalled: false,
    flushCalled: false,
    awaitsDrain: false,
    destroyLater: undefined,
    drain: undefined,
    final: undefined,
    unpipeAll: () => {},
    stopFollowing: () => {},
  };
  follow(capture);
  return { capture, ended };
}

function follow(capture: Capture): void {
  const { res } = capture;
  const pipes = followPipes(res, {
    open: () => capture.stage === "open",
    onAbandoned: () => cutOff(capture),
  });
  const unwatch = watchConnection(res, (by) => connectionLost(capture, by));
  capture.unpipeAll = pipes.unpipeAll;
  capture.stopFollowing = () => {
    unwatch();
    pipes.unfollow();
    capture.drain?.cancel();
  };
}

/** Calls a real method, with the head before it if that has not left yet. */
export function letThrough<T>(capture: Capture, send: () => T): T {
  const { res, own, real } = capture;
  capture.passing = true;
  try {
    if (!capture.headLeft) {
      capture.headLeft = true;
      own._header = null;
      if (capture.head === "explicit") real.writeHead.call(res, res.statusCode);
    }
    return send();
  } finally {
    capture.passing = false;
  }
}

/**
 * What goes with a head goes as bytes, where that has a field beyond ASCII: Node writes a head together with a text in the
 * encoding of the text, which would make other bytes of the field than a replay has.
 */
export function sendable({ res, headLeft }: Capture, held: Partial<Held>): Partial<Held> {
  if (headLeft || typeof held.chunk !== "string" || held.bytes === undefined) return held;
  const beyondAscii = Object.values(res.getHeaders()).some((value) => /[^\0-\x7f]/.test(String(value)));
  return beyondAscii ? { chunk: held.bytes } : held;
}

function connectionLost(capture: Capture, by: GoneBy): void {
  if (capture.stage !== "open") return;
  if (by === "us") {
    abort(capture);
    return;
  }
  if (capture.body.size() > 0 || capture.flushCalled) startDrain(capture);
  // A handler that waits for room waits for ever otherwise; by then `pipe` has taken its own listener off.
  if (capture.awaitsDrain) setImmediate(() => capture.res.emit("drain"));
}

export function startDrain(capture: Capture): void {
  const { clock, drainMs } = capture.options;
  capture.drain ??= clock.setTimer(() => cutOff(capture), drainMs);
}

/** The answer is all there. */
export function conclude(capture: Capture): void {
  const { body, bodyless, declaredLength } = capture;
  const { status, headers } = freeze(capture);
  if (!bodyless && declaredLength !== undefined && body.size() < declaredLength) {
    capture.settle({ kind: "aborted", status });
    return;
  }
  // Bytes beyond the Content-Length are not part of the message.
  capture.settle({ kind: "answered", status, headers, body: body.bytes()?.subarray(0, declaredLength) });
}

/**
 * The client has left and the rest will not come; what the answer was is known from its head. Where all of it
 * was to be held, an answer without an end is none.
 */
export function cutOff(capture: Capture): void {
  if (capture.stage !== "open") return;
  if (capture.options.hold === "everything") {
    abort(capture);
    return;
  }
  const { status, headers } = freeze(capture);
  capture.unpipeAll();
  capture.settle({ kind: "answered", status, headers, body: undefined });
}

export function abort(capture: Capture): void {
  const made = capture.head !== "none";
  const { status } = freeze(capture);
  capture.settle({ kind: "aborted", status: made ? status : undefined });
}

export function outgrow(capture: Capture): void {
  const { status } = freeze(capture);
  capture.unpipeAll();
  capture.held = [];
  capture.settle({ kind: "outgrown", status });
}

/** From here on nothing alters the answer, and until it is let go it looks as if it had not been sent. */
function freeze(capture: Capture): { status: number; headers: readonly HeaderLine[] } {
  const { res, own } = capture;
  const { statusCode, statusMessage } = res;
  const headers = headerLines(res);
  capture.final = { statusCode, statusMessage };
  capture.stopFollowing();
  capture.stage = "frozen";
  // A head that has left is Node's: newer versions write it in a later tick than the first byte.
  if (!capture.headLeft) own._header = null;
  show(res, "headersSent", false);
  guard(capture);
  return { status: statusCode, headers };
}

/** Lets a property of `res` that Node computes read as `value`. */
export function show(res: ServerResponse, name: "headersSent" | "writableEnded", value: boolean): void {
  Object.defineProperty(res, name, { value, configurable: true, writable: true });
}

/**
 * Whoever has seen an answer that looks unsent may act on that much later (Express's final handler first waits for
 * the rest of the request), and must not be thrown at then.
 */
function guard(capture: Capture): void {
  const { res, own } = capture;
  for (const name of ALTERING) {
    const method = res[name] as (...given: unknown[]) => unknown;
    const guarded = (...given: unknown[]): unknown =>
      capture.stage === "frozen" || own._header !== null ? res : method.apply(res, given);
    Object.assign(res, { [name]: guarded });
  }
}
