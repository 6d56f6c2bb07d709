/**
 * @module
 * Sends one request over a socket of its own and reports what comes back, and when.
 *
 * Client libraries join header lines, decode bodies and repeat requests; a promise about bytes can only be
 * proven without them.
 */
import { connect } from "node:net";
import { performance } from "node:perf_hooks";
import { type RawRequest, type RawResponse, readResponse, requestBytes } from "./raw-message.js";

/** A server that says nothing for so long has forgotten the request. */
const SILENCE_MS = 15_000;

export interface RawExchange {
  /**
   * The whole answer, or with `complete: false` what there was when the connection broke.
   * Rejects if there was no head, or it was not HTTP.
   */
  readonly response: Promise<RawResponse>;
  /** Milliseconds from sending to the first byte of the body. Rejects if the answer ends without. */
  readonly firstByteMs: Promise<number>;
  /** Milliseconds from sending to the end of the answer. */
  readonly endMs: Promise<number>;
  /** Leaves, as a client does whose network is gone. */
  disconnect(): void;
}

/** @param request a request, or bytes that are sent as they are (then `method` is taken to be POST). */
export function exchange(port: number, request: RawRequest | Uint8Array): RawExchange {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const [bytes, method] =
    request instanceof Uint8Array ? [request, "POST"] : [requestBytes(request), request.method];
  const response = promise<RawResponse>();
  const firstByteMs = promise<number>();
  const endMs = promise<number>();
  const startMs = performance.now();
  let received = Buffer.alloc(0);

  const fail = (error: Error): void => {
    for (const { reject } of [response, firstByteMs, endMs]) reject(error);
    socket.destroy();
  };
  const look = (ended: boolean): void => {
    const seen = readResponse(method, received, ended);
    if (seen !== undefined && seen.body.length > 0) firstByteMs.resolve(performance.now() - startMs);
    if (ended && seen === undefined) throw new Error("The connection was closed before an answer");
    if (seen === undefined || !(seen.complete || ended)) return;
    endMs.resolve(performance.now() - startMs);
    firstByteMs.reject(new Error("The answer had no body"));
    // The server closes too (RFC 9112 §9.6), and until then may send what does not belong there.
    if (ended) response.resolve(seen);
    else socket.end();
  };
  const guarded = (ended: boolean): void => {
    try {
      look(ended);
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)));
    }
  };

  socket.setTimeout(SILENCE_MS, () => fail(new Error(`No answer within ${SILENCE_MS} ms`)));
  socket.on("data", (chunk) => {
    received = Buffer.concat([received, chunk]);
    guarded(false);
  });
  // A reset is one of the ways in which an answer breaks off.
  socket.on("error", () => undefined);
  socket.on("close", () => guarded(true));
  socket.write(bytes);
  return {
    response: response.promise,
    firstByteMs: firstByteMs.promise,
    endMs: endMs.promise,
    disconnect: () => socket.destroy(),
  };
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: Error): void;
}

function promise<T>(): Deferred<T> {
  let settle: Pick<Deferred<T>, "resolve" | "reject"> | undefined;
  const made = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  // Not every caller waits for everything.
  made.catch(() => undefined);
  return {
    promise: made,
    resolve: (value) => settle?.resolve(value),
    reject: (error) => settle?.reject(error),
  };
}
