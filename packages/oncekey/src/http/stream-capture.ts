/**
 * @module
 * Captures a body that comes as a stream of chunks, while it passes, and holds back its end. Shared by the
 * adapters whose frameworks take a body as a stream, the web's or Node's.
 *
 * Invariants:
 *
 * - What is there without waiting is gathered, so that a body that was never a stream stays whole and can still
 *   be replaced. As soon as the source makes anybody wait, what there is flows, at the pace of the client.
 * - Once it flows, only what makes the message complete waits: the end, or the chunk that reaches the
 *   Content-Length. With `hold: "everything"` nothing flows.
 * - A client that leaves does not stop the work: the rest is read without waiting for anybody, up to the bound
 *   of what is kept or for `drainMs`.
 *
 * What the chunks are part of is left to the adapters.
 */
import type { Timer } from "../core/clock.js";
import type { CaptureOptions } from "./answer.js";
import { type BoundedBody, boundedBody } from "./bounded-body.js";

/** Where a body comes from. */
export interface ChunkSource {
  next(): Promise<{ readonly done?: boolean | undefined; readonly value?: unknown }>;
  /** The rest is not wanted. Never throws. */
  stop(): void;
}

/** @throws TypeError if somebody reads from it already. */
export function webSource(body: ReadableStream<unknown>): ChunkSource {
  const reader = body.getReader();
  return {
    next: () => reader.read(),
    stop() {
      reader.cancel().catch(() => {});
    },
  };
}

/** Where a body goes once it flows. */
export interface ChunkSink {
  /** Is called once, before anything else. */
  begin(): void;
  push(chunk: Uint8Array): void;
  /** Settles when the client can take more, or has left. */
  room(): Promise<void> | undefined;
  end(): void;
  fail(error: unknown): void;
}

export type BodyEnding =
  /** `undefined`: too large, or cut off after the client had left. */
  | { readonly kind: "whole"; readonly body: Uint8Array | undefined }
  /** `passed`: something has left before. */
  | { readonly kind: "broken"; readonly error: unknown; readonly passed: boolean }
  | { readonly kind: "outgrown" };

export interface StreamCapture {
  /** Settles when the source has ended or cannot any more. Never rejects. */
  readonly ended: Promise<BodyEnding>;
  /** Whether the sink has begun. What has not flowed is sent whole by the adapter, or not at all. */
  flows(): boolean;
  /** The client has left. */
  leave(): void;
  /** Lets the end go. */
  release(): void;
  /** Ends it here, so that it does not look complete. */
  cut(error: unknown): void;
}

export interface StreamCaptureOptions extends CaptureOptions {
  /** The Content-Length that was set. */
  readonly declaredLength: number | undefined;
  /** More is to come for ever, so there is no use in waiting for the whole. */
  readonly endless: boolean;
}

interface Passage {
  readonly source: ChunkSource;
  readonly sink: ChunkSink;
  readonly options: StreamCaptureOptions;
  readonly body: BoundedBody;
  readonly settle: (ending: BodyEnding) => void;
  held: Uint8Array[];
  flows: boolean;
  passed: boolean;
  gone: boolean;
  over: boolean;
  broken: boolean;
  drain: Timer | undefined;
}

export function captureStream(
  source: ChunkSource,
  sink: ChunkSink,
  options: StreamCaptureOptions,
): StreamCapture {
  let settle: Passage["settle"] = () => {};
  const ended = new Promise<BodyEnding>((resolve) => {
    settle = resolve;
  });
  const passage: Passage = {
    source,
    sink,
    options,
    body: boundedBody(options.maxResultBytes),
    settle,
    held: [],
    flows: false,
    passed: false,
    gone: false,
    over: false,
    broken: false,
    drain: undefined,
  };
  follow(passage).catch((error: unknown) => {
    if (!passage.over) fail(passage, error);
  });
  return {
    ended,
    flows: () => passage.flows,
    leave: () => leave(passage),
    release() {
      if (!passage.flows || passage.gone || passage.broken) return;
      pass(passage, passage.held);
      sink.end();
    },
    cut(error) {
      fail(passage, error);
      source.stop();
    },
  };
}

async function follow(passage: Passage): Promise<void> {
  const { source, sink, options } = passage;
  const { hold } = options;
  if (options.endless && hold === "everything") {
    finish(passage, { kind: "outgrown" });
    source.stop();
  }
  while (!passage.over) {
    const next = source.next();
    if (!passage.flows && hold === "end" && !(await isThere(next))) flow(passage);
    const { done, value } = await next;
    if (passage.over) return;
    if (done === true) return conclude(passage);
    accept(passage, bytesOf(value));
    if (passage.flows && !passage.gone && !passage.over) await sink.room();
  }
}

function flow(passage: Passage): void {
  passage.flows = true;
  passage.sink.begin();
  pass(passage, passage.held);
  passage.held = [];
}

function pass(passage: Passage, chunks: readonly Uint8Array[]): void {
  if (passage.gone) return;
  for (const chunk of chunks) {
    passage.passed = true;
    passage.sink.push(chunk);
  }
}

function accept(passage: Passage, chunk: Uint8Array): void {
  const { body, options, source } = passage;
  // A copy, because the handler may use its buffer again.
  const copy = new Uint8Array(chunk);
  body.add(copy);
  if (passage.gone) {
    if (body.overflown()) cutOff(passage);
  } else if (passage.flows) {
    passOn(passage, copy);
  } else {
    passage.held.push(copy);
    if (body.overflown() && options.hold === "end") flow(passage);
    else if (body.overflown()) finish(passage, { kind: "outgrown" });
  }
  if (passage.over) source.stop();
}

/** More than was declared is passed on all the same: the length may speak of a coding that is undone by now. */
function passOn(passage: Passage, chunk: Uint8Array): void {
  const { body, options } = passage;
  pass(passage, passage.held);
  passage.held = [];
  if (options.declaredLength !== undefined && body.size() >= options.declaredLength) passage.held.push(chunk);
  else pass(passage, [chunk]);
}

function leave(passage: Passage): void {
  if (passage.gone || passage.over) return;
  const { clock, drainMs } = passage.options;
  passage.gone = true;
  passage.held = [];
  if (passage.body.overflown()) cutOff(passage);
  else passage.drain = clock.setTimer(() => cutOff(passage), drainMs);
}

/** The client has left and the rest will not come. Where all of it was to be held, that is no answer. */
function cutOff(passage: Passage): void {
  if (passage.options.hold === "end") finish(passage, { kind: "whole", body: undefined });
  else fail(passage, new Error("The client has left"));
  passage.source.stop();
}

function conclude(passage: Passage): void {
  const { body, options } = passage;
  if (options.declaredLength !== undefined && body.size() < options.declaredLength) {
    fail(passage, new TypeError("The body is shorter than its Content-Length"));
  } else {
    finish(passage, { kind: "whole", body: body.bytes() });
  }
}

function fail(passage: Passage, error: unknown): void {
  finish(passage, { kind: "broken", error, passed: passage.passed });
  if (passage.flows && !passage.gone) passage.sink.fail(error);
  passage.broken = true;
}

function finish(passage: Passage, ending: BodyEnding): void {
  passage.over = true;
  passage.drain?.cancel();
  passage.settle(ending);
}

/**
 * How often promises may hand on to one another before they count as waiting for something. A body made of a text,
 * of bytes or of a form takes 1 to 6 of these turns (Node 20 to 26, measured); nothing from outside gets a turn in between.
 */
const TURNS = 12;

async function isThere(next: Promise<unknown>): Promise<boolean> {
  let there = false;
  const settled = (): void => {
    there = true;
  };
  next.then(settled, settled);
  for (let turn = 0; turn < TURNS && !there; turn += 1) await undefined;
  return there;
}

const encoder = new TextEncoder();

/** Servers take text too, which the standard does not allow in a body. */
function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  if (typeof chunk === "string") return encoder.encode(chunk);
  throw new TypeError("A body is made of bytes");
}
