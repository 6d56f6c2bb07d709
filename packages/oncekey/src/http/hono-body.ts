/**
 * @module
 * Reads the body of a Hono request so that the handler can still read it, by Hono's methods or by those of the
 * request itself.
 *
 * Invariant: the bytes are read once, and both ways of reading give the same. Copying the request instead would
 * cost three times as much as handling it, so that is only done for a body whose length is not known.
 */
import type { HonoRequest } from "hono";
import type { BodyReading } from "./port.js";
import { peekRequest } from "./web-request.js";

const decoder = new TextDecoder();

export async function readHonoBody(req: HonoRequest, maxBytes: number): Promise<BodyReading> {
  const { raw, bodyCache } = req;
  const kept = Object.keys(bodyCache);
  // What a form was made of is lost; written anew it has another boundary each time.
  if (kept.length > 0) return kept[0] === "formData" ? { kind: "gone" } : bytesOf(await req.arrayBuffer());
  if (raw.bodyUsed) return { kind: "gone" };
  const length = raw.headers.get("content-length");
  if (length === null || Number(length) > maxBytes) return peekRequest(raw, maxBytes);
  let buffer: ArrayBuffer;
  try {
    buffer = await raw.arrayBuffer();
  } catch {
    return { kind: "aborted" };
  }
  const text = decoder.decode(buffer);
  // In this order: from the first that it finds, Hono makes the others.
  Object.assign(bodyCache, { text: Promise.resolve(text), arrayBuffer: Promise.resolve(buffer) });
  restore(raw, buffer);
  return bytesOf(buffer);
}

function bytesOf(buffer: ArrayBuffer): BodyReading {
  return buffer.byteLength === 0 ? { kind: "none" } : { kind: "bytes", bytes: new Uint8Array(buffer) };
}

/** `bytes` is younger than the others. */
const READERS = ["arrayBuffer", "blob", "bytes", "clone", "formData", "json", "text"];

/** Lets `raw` read from `buffer`, by a request that is made when somebody asks. */
function restore(raw: Request, buffer: ArrayBuffer): void {
  let made: Request | undefined;
  const unread = (): Request => {
    const { method, headers } = raw;
    made ??= new Request(raw.url, { method, headers, body: buffer });
    return made;
  };
  const properties: PropertyDescriptorMap = {
    body: { configurable: true, get: () => unread().body },
    bodyUsed: { configurable: true, get: () => made?.bodyUsed ?? false },
  };
  for (const name of READERS) {
    properties[name] = { configurable: true, value: () => unread()[name as "text"]() };
  }
  Object.defineProperties(raw, properties);
}
