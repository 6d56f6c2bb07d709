/**
 * @module
 * The port between the exchange and a framework: a request as far as the protocol looks at it, and the answering side.
 *
 * Invariant: an adapter translates and decides nothing. It is asked for the body at most once, before the handler starts,
 * and exactly one of `pass`, `send` and `start` is called on it.
 */
import type { Awaitable } from "../core/awaitable.js";
import type { Begun } from "../core/work.js";
import type { CapturedAnswer, CaptureOptions, HeaderLine, WholeAnswer } from "./answer.js";
import type { RequestBody } from "./request-body.js";

/** What a body's reading gives: `gone` = consumed before us and not kept; `aborted` = its client has left. */
export type BodyReading =
  | RequestBody
  | { readonly kind: "too-large"; readonly length: number | undefined }
  | { readonly kind: "gone" }
  | { readonly kind: "aborted" };

/** A request, as far as the protocol looks at it. */
export interface HttpRequest<C> {
  /** What the framework hands its handler: given to `scope`, key functions and `workOf`. */
  readonly carrier: C;
  readonly method: string;
  /** Path and query as sent, mount included. */
  readonly target: string;
  /** The route's pattern, mount included; `undefined` where the framework has none. */
  readonly route: string | undefined;
  /** The field lines of a header, one entry each, unjoined where the framework can tell. */
  readonly lines: (name: string) => readonly string[];
  /** Reads the body so that the handler can read it again. Called at most once, before the handler starts. */
  readonly body: (maxBytes: number) => Awaitable<BodyReading>;
  /** Aborts when the client leaves. Asked only for a repeat that waits and for a refusal, so it may be made then. */
  readonly left: () => AbortSignal | undefined;
}

/** How a handler's answer is captured. */
export interface Capturing extends CaptureOptions {
  /** To be set on the answer before the handler begins. */
  readonly headers: readonly HeaderLine[];
}

/** The answering side of one exchange. Exactly one of `pass`, `send` and `start` is called. */
export interface HttpAnswering {
  /** Lets the handler answer as if we were not there. */
  pass(): void;
  /** Answers in place of the handler, beside the headers that outer layers have set. */
  send(answer: WholeAnswer): void;
  /** Starts the handler and captures its answer: at once if it is whole by then, or never will be; later otherwise. */
  start(
    begun: Begun,
    capturing: Capturing,
  ): Awaitable<{ readonly answer: CapturedAnswer; readonly before: readonly HeaderLine[] }>;
  /** After `start`: lets go what is held back. */
  release(): void;
  /** After `start`: answers with this instead; `false` if something has left already. */
  replaceWith(answer: WholeAnswer): boolean;
  /** After `start`, when something has left that must not look complete: cuts the connection. */
  cut(): void;
}
