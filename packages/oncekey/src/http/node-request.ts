/**
 * @module
 * What a Node request carries, looked at without taking it away from the handler.
 *
 * Invariant: whatever was read is back in the stream before anybody else can read it, so any parser can follow.
 * What a body means and whether it has to be there is left to `exchange.ts`.
 */
import type { IncomingMessage } from "node:http";
import { types } from "node:util";
import { joined } from "./bounded-body.js";

export type PeekedBody =
  /** The request has no body; its stream was not touched. */
  | { readonly kind: "none" }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  /** Somebody has read and parsed it before: what they left in `req.body`. */
  | { readonly kind: "parsed"; readonly value: unknown }
  /** More than `maxBytes`. It can still be read whole. */
  | { readonly kind: "too-large" }
  /** Read before, wholly or in part, and not kept. */
  | { readonly kind: "gone" }
  /** The client left before it was all there. */
  | { readonly kind: "aborted" };

/** What body parsers leave behind. */
interface ParsedRequest {
  readonly body?: unknown;
  /** The bytes themselves, where a parser was asked to keep them. */
  readonly rawBody?: unknown;
}

/** The value of every field line of this name. Node itself joins two lines into one value, which may look valid. */
export function fieldLines({ rawHeaders }: IncomingMessage, name: string): string[] {
  const lines: string[] = [];
  const key = name.toLowerCase();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() === key) lines.push(rawHeaders[index + 1] ?? "");
  }
  return lines;
}

const peeked = new WeakMap<IncomingMessage, Promise<PeekedBody>>();

/**
 * The body of `req`, of which up to `maxBytes` are read and put back. Asked again it tells the same.
 *
 * How long a slow client may take is bounded by the server's `requestTimeout` (5 minutes unless set).
 */
export function peekBody(req: IncomingMessage, maxBytes: number): Promise<PeekedBody> {
  let body = peeked.get(req);
  if (body === undefined) {
    body = lookAt(req, maxBytes);
    peeked.set(req, body);
  }
  return body;
}

async function lookAt(req: IncomingMessage, maxBytes: number): Promise<PeekedBody> {
  const length = req.headers["content-length"];
  if (req.headers["transfer-encoding"] === undefined && Number(length ?? 0) === 0) return { kind: "none" };
  // Decoded text cannot be put back as the bytes it was.
  if (req.readableDidRead || req.readableFlowing === true || req.readableEncoding !== null)
    return readBefore(req);
  if (req.destroyed) return { kind: "aborted" };
  if (Number(length ?? 0) > maxBytes) return { kind: "too-large" };
  // By the next tick all that came with the head is parsed; looking at an empty stream would end it.
  await undefined;
  if (isWhole(req) && req.readableLength === 0) return { kind: "none" };
  return readAndPutBack(req, maxBytes);
}

/** Requests that a framework injects do not have `complete`; they come in one piece. */
function isWhole({ complete }: { readonly complete: boolean | undefined }): boolean {
  return complete !== false;
}

/** Files that a multipart parser took are not in what it left, so what it left is not the body. */
function readBefore(req: IncomingMessage & ParsedRequest): PeekedBody {
  if (types.isUint8Array(req.rawBody)) return { kind: "bytes", bytes: req.rawBody };
  const multipart = /^\s*multipart\//i.test(req.headers["content-type"] ?? "");
  if (!req.readableEnded || multipart || req.body === undefined) return { kind: "gone" };
  return { kind: "parsed", value: req.body };
}

/**
 * Bytes are put back when the parser has seen the last one and before the stream says `end`, which it does in
 * a later tick than the read that emptied it, and only if it is still empty then.
 */
function readAndPutBack(req: IncomingMessage, maxBytes: number): Promise<PeekedBody> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    const done = (body: PeekedBody): void => {
      req.off("readable", onReadable);
      req.off("close", onClose);
      resolve(body);
    };
    const onReadable = (): void => {
      const chunk: unknown = req.readableLength > 0 ? req.read() : undefined;
      if (types.isUint8Array(chunk)) {
        chunks.push(chunk);
        size += chunk.byteLength;
      }
      if (isWhole(req) || size > maxBytes) done(putBack(req, joined(chunks), maxBytes));
    };
    const onClose = (): void => done({ kind: "aborted" });
    req.on("readable", onReadable);
    req.on("close", onClose);
  });
}

function putBack(req: IncomingMessage, bytes: Uint8Array, maxBytes: number): PeekedBody {
  if (bytes.byteLength === 0) return { kind: "none" };
  req.unshift(bytes);
  return bytes.byteLength > maxBytes ? { kind: "too-large" } : { kind: "bytes", bytes };
}
