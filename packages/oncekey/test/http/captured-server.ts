/**
 * @module
 * A server whose every response is captured, with the test in the place of the exchange: it sees each capture
 * and decides when it is let go.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import {
  type CapturedAnswer,
  captureNodeResponse,
  type NodeCapture,
  type NodeCaptureOptions,
} from "../../src/http/node-response.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { listen, type RawClient, type TestServer } from "./raw-http.js";

export interface CapturedServer extends TestServer {
  /** The capture of the next request, in the order they came. */
  capture(): Promise<NodeCapture>;
}

const OPTIONS: NodeCaptureOptions = {
  hold: "end",
  maxResultBytes: 1024 * 1024,
  drainMs: 30_000,
  clock: manualClock(),
};

/** What the capture hands on: the handler, or an app whose first middleware it is. */
export type Wrap = (capture: (res: ServerResponse) => void) => RequestListener;

export async function serveCaptured(
  wrap: Wrap,
  options: Partial<NodeCaptureOptions> = {},
): Promise<CapturedServer> {
  const captures: NodeCapture[] = [];
  const waiting: ((capture: NodeCapture) => void)[] = [];
  const listener = wrap((res) => {
    const capture = captureNodeResponse(res, { ...OPTIONS, ...options });
    const waiter = waiting.shift();
    if (waiter === undefined) captures.push(capture);
    else waiter(capture);
  });
  const server = await listen(listener);
  return {
    ...server,
    capture() {
      const first = captures.shift();
      if (first !== undefined) return Promise.resolve(first);
      return new Promise((resolve) => waiting.push(resolve));
    },
  };
}

export type Handler = (req: IncomingMessage, res: ServerResponse) => unknown;

/** A plain handler behind a capture, and a client of it. Both end with the test. */
export async function start(
  handler: Handler,
  options: Partial<NodeCaptureOptions> = {},
): Promise<{ server: CapturedServer; client: RawClient }> {
  const server = await serveCaptured(
    (capture) => (req, res) => {
      capture(res);
      handler(req, res);
    },
    options,
  );
  return { server, client: await server.connect() };
}

/** The body of an answer that was captured with one. */
export function bodyOf(answer: CapturedAnswer): string | undefined {
  if (answer.kind !== "answered") throw new Error(`Expected an answer, got ${answer.kind}`);
  return answer.body === undefined ? undefined : Buffer.from(answer.body).toString();
}

/** Some turns of the event loop, sockets included: what has left by now has arrived. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve, 2));
}

/** Waits until the server has noticed that `client` is gone. */
export async function hangUp(client: RawClient, server: TestServer): Promise<void> {
  client.destroy();
  await vacant(server);
}

/** Waits until no connection is left. */
export async function vacant({ server }: TestServer): Promise<void> {
  const open = (): Promise<number> =>
    new Promise((resolve, reject) =>
      server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );
  while ((await open()) > 0) await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
}
