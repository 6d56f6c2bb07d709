/**
 * @module
 * Captures what a handler answers through Node's `ServerResponse`, while it passes, and holds back its end.
 * Shared by the adapters of every framework that answers through one.
 *
 * Invariants:
 *
 * - Head and data flow at once. Only what makes the message complete waits for `release`: the end, or the
 *   chunk that reaches the Content-Length, or the head of a message without a body. With `hold: "everything"`
 *   nothing leaves before.
 * - A complete answer is frozen: a late throw, an error handler or a second `end` cannot alter it.
 * - `ended` settles once the handler has ended its answer or cannot any more, whether or not its client is
 *   still there.
 *
 * Nothing is decided here about keys, records or which answers are kept: that is left to `exchange.ts`. What
 * the handler does to the response is followed in `node-methods.ts`.
 */
import type { ServerResponse } from "node:http";
import { joined } from "./bounded-body.js";
import {
  type Capture,
  type CapturedAnswer,
  type Held,
  letThrough,
  type NodeCaptureOptions,
  openCapture,
  sendable,
  show,
} from "./node-capture.js";
import { type HeaderLine, resetLines, sendAnswer, type WholeAnswer } from "./node-headers.js";
import { wrapMethods } from "./node-methods.js";

export type { CapturedAnswer, NodeCaptureOptions } from "./node-capture.js";

export interface NodeCapture {
  /** The lines that were set when the capture began. */
  readonly headersBefore: readonly HeaderLine[];
  /** Settles when the handler has ended its answer, or cannot any more. Never rejects. */
  readonly ended: Promise<CapturedAnswer>;
  /** Whether the head has left, so that the answer cannot be replaced any more. */
  headSent(): boolean;
  /** Lets go what is held, as the handler meant it, and steps aside. Safe to call again. */
  release(): void;
  /**
   * Sends `answer` in place of what is held, beside the lines of `headersBefore`. Says `false`, and does
   * nothing, if the head has left or the answer was let go.
   */
  replaceWith(answer: WholeAnswer): boolean;
  /** Breaks the connection, so that what has left cannot pass for a whole answer. */
  cut(): void;
}

/** Begins to capture `res`, on which nothing has been sent yet. */
export function captureNodeResponse(res: ServerResponse, options: NodeCaptureOptions): NodeCapture {
  const { capture, ended } = openCapture(res, options);
  wrapMethods(capture);
  return {
    headersBefore: capture.headersBefore,
    ended,
    headSent: () => capture.headLeft,
    release: () => release(capture),
    replaceWith: (answer) => replace(capture, answer),
    cut: () => cut(capture),
  };
}

function release(capture: Capture): void {
  if (!stepAside(capture)) return;
  const { res, real, held } = capture;
  capture.held = [];
  const { chunk, encoding } = sendable(capture, wholeOf(held));
  try {
    if (capture.endCalled || capture.destroyLater) {
      letThrough(capture, () => real.end.call(res, chunk, encoding));
    } else if (chunk !== undefined) letThrough(capture, () => real.write.call(res, chunk, encoding));
    else if (capture.flushCalled) letThrough(capture, () => real.flushHeaders.call(res));
    else if (capture.head !== "none") letThrough(capture, () => {});
  } catch (error) {
    // Node refuses to send what the handler made, and the handler is past hearing of it.
    real.destroy.call(res, error as Error);
  }
  showSent(capture);
}

/** Text goes to Node as text: it writes head and body as one. */
function wholeOf(held: readonly Held[]): Partial<Held> {
  const [first, second] = held;
  if (second === undefined) return first ?? {};
  return { chunk: joined(held.map(({ bytes }) => bytes)) };
}

function replace(capture: Capture, answer: WholeAnswer): boolean {
  if (capture.headLeft || !stepAside(capture)) return false;
  const { res, own, real } = capture;
  capture.held = [];
  capture.headLeft = true;
  capture.endCalled = true;
  capture.final = { statusCode: answer.status, statusMessage: "" };
  own._header = null;
  resetLines(res, capture.headersBefore);
  sendAnswer(res, answer, (body) => real.end.call(res, body));
  showSent(capture);
  return true;
}

/** What was shown of a frozen answer ends: it has left, unless an outer layer sends it later. */
function showSent({ final, res, own }: Capture): void {
  if (final !== undefined) show(res, "headersSent", own._header !== null);
}

function cut(capture: Capture): void {
  stepAside(capture);
  capture.real.destroy.call(capture.res);
}

/** Ends the capture: from here on every call reaches the real response. `false` if that was so already. */
function stepAside(capture: Capture): boolean {
  if (capture.stage === "released") return false;
  capture.stopFollowing();
  capture.stage = "released";
  const { destroyLater, final, res, real } = capture;
  Object.assign(res, final);
  if (destroyLater !== undefined) {
    // Before Node's own listener, which takes the response off its socket.
    res.prependOnceListener("finish", () => real.destroy.call(res, destroyLater.error));
  }
  return true;
}
