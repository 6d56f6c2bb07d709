/**
 * @module
 * A web `Request` as the protocol looks at it, and as its handler gets it.
 *
 * Invariant: it is the same object before and after, so that whatever an application or a framework keeps on it is
 * found; its body can still be read, by any of its methods.
 */
import { attachWork, type Begun } from "../core/work.js";
import { boundedBody } from "./bounded-body.js";
import type { BodyReading, HttpRequest } from "./port.js";

/** What only the framework knows of a request. */
export type WebRoute<C> = Pick<HttpRequest<C>, "carrier" | "route" | "body">;

export function webRequest<C>(request: Request, { carrier, route, body }: WebRoute<C>): HttpRequest<C> {
  return {
    carrier,
    route,
    body,
    method: request.method,
    target: targetOf(request.url),
    lines(name) {
      const value = request.headers.get(name);
      return value === null ? [] : [value];
    },
    left: () => request.signal,
  };
}

function targetOf(url: string): string {
  const path = url.indexOf("/", url.indexOf("//") + 2);
  return path === -1 ? "/" : url.slice(path);
}

/**
 * Lets the handler find its work on `carrier`, and the signal of its claim on `request`: a client that leaves
 * does not stop the work.
 */
export function protectRequest(request: Request, carrier: object, begun: Begun): void {
  attachWork(carrier, begun);
  Object.defineProperty(request, "signal", { configurable: true, get: () => begun.work().signal });
}

/** Reads up to `maxBytes` of a copy of the body, and leaves `request` itself unread. */
export async function peekRequest(request: Request, maxBytes: number): Promise<BodyReading> {
  const length = Number(request.headers.get("content-length") ?? Number.NaN);
  if (length > maxBytes) return { kind: "too-large", length };
  if (request.bodyUsed || request.body?.locked === true) return { kind: "gone" };
  const copy = request.clone().body;
  if (copy === null) return { kind: "none" };
  return readStream(copy, maxBytes);
}

async function readStream(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<BodyReading> {
  const reader = body.getReader();
  const read = boundedBody(maxBytes);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      read.add(value);
      if (read.overflown()) {
        // It settles when the other copy has been read as well.
        reader.cancel().catch(() => {});
        return { kind: "too-large", length: undefined };
      }
    }
  } catch {
    return { kind: "aborted" };
  }
  const bytes = read.bytes();
  return bytes === undefined || bytes.byteLength === 0 ? { kind: "none" } : { kind: "bytes", bytes };
}
