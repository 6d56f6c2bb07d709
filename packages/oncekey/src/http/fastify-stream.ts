/**
 * @module
 * A payload that Fastify was given as a stream, Node's or the web's, captured while it passes.
 *
 * Invariant: what Fastify gets is a stream of ours, so that it can destroy that and the source still runs to its end.
 */
import { Readable } from "node:stream";
import {
  type ChunkSink,
  type ChunkSource,
  captureStream,
  type StreamCapture,
  type StreamCaptureOptions,
  webSource,
} from "./stream-capture.js";

export interface StreamPayloadOptions extends StreamCaptureOptions {
  /** Gets what is to be sent in place of the payload, unless that turns out whole before it has to flow. */
  onFlow(body: Readable): void;
  /** The source has failed before its first byte was passed on. */
  onBreak(): void;
}

/** @throws TypeError if `payload` is no stream, or somebody reads from it already. */
export function streamPayload(payload: unknown, options: StreamPayloadOptions): StreamCapture {
  const capture = captureStream(
    sourceOf(payload),
    sinkOf(options, () => capture.leave()),
    options,
  );
  return capture;
}

function sourceOf(payload: unknown): ChunkSource {
  if (payload instanceof ReadableStream) return webSource(payload);
  const given = payload as NodeJS.ReadableStream;
  // Streams in the manner of Node 0.8 cannot be iterated.
  const stream = given instanceof Readable ? given : new Readable().wrap(given);
  // Whoever iterates hears of an error while it waits, but it may come later.
  stream.on("error", () => {});
  const chunks = stream[Symbol.asyncIterator]();
  return { next: () => chunks.next(), stop: () => void stream.destroy() };
}

function sinkOf({ onFlow, onBreak }: StreamPayloadOptions, leave: () => void): ChunkSink {
  let pushed = false;
  let full = false;
  let wake = (): void => {};
  const body = new Readable({
    read() {
      full = false;
      wake();
    },
    destroy(error, done) {
      leave();
      wake();
      done(error);
    },
  });
  return {
    begin: () => onFlow(body),
    push(chunk) {
      pushed = true;
      full = !body.push(chunk);
    },
    room() {
      if (!full) return undefined;
      return new Promise((resolve) => {
        wake = resolve;
      });
    },
    end: () => void body.push(null),
    fail(error) {
      if (!pushed) onBreak();
      body.destroy(error instanceof Error ? error : new Error("The body broke off", { cause: error }));
    },
  };
}
