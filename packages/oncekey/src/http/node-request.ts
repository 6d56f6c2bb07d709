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
import type { BodyReading } from "./port.js";

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

const peeked = new WeakMap<IncomingMessage, Promise<BodyReading>>();

/**
 * The body of `req`, of which up to `maxBytes` are read and put back. Asked again it tells the same.
 *
 * A body that was parsed before is what the parser left in `req.body`; one that is too large can still be read whole.
 * How long a slow client may take is bounded by the server's `requestTimeout` (5 minutes unless set).
 */
export function peekBody(req: IncomingMessage, maxBytes: number): Promise<BodyReading> {
  let body = peeked.get(req);
  if (body === undefined) {
    body = lookAt(req, maxBytes);
    peeked.set(req, body);
  }
  return body;
}

async function lookAt(req: IncomingMessage, maxBytes: number): Promise<BodyReading> {
  const length = declaredLength(req);
  if (length === undefined && req.headers["transfer-encoding"] === undefined) return { kind: "none" };
  if (length === 0) return { kind: "none" };
  if (length !== undefined && length > maxBytes) return { kind: "too-large", length };
  // Decoded text cannot be put back as the bytes it was.
  if (req.readableDidRead || req.readableFlowing === true || req.readableEncoding !== null)
    return readBefore(req);
  if (req.destroyed) return { kind: "aborted" };
  // By the next tick all that came with the head is parsed; looking at an empty stream would end it.
  await undefined;
  if (isWhole(req) && req.readableLength === 0) return { kind: "none" };
  return readAndPutBack(req, maxBytes);
}

function declaredLength({ headers }: IncomingMessage): number | undefined {
  const length = headers["content-length"];
  return length === undefined ? undefined : Number(length);
}

/** Requests that a framework injects do not have `complete`; they come in one piece. */
function isWhole({ complete }: { readonly complete: boolean | undefined }): boolean {
  return complete !== false;
}

/** Files that a multipart parser took are not in what it left, so what it left is not the body. */
function readBefore(req: IncomingMessage & ParsedRequest): BodyReading {
  if (types.isUint8Array(req.rawBody)) return { kind: "bytes", bytes: req.rawBody };
  const multipart = /^\s*multipart\//i.test(req.headers["content-type"] ?? "");
  if (!req.readableEnded || multipart || req.body === undefined) return { kind: "gone" };
  return { kind: "parsed", value: req.body };
}

/**
 * Bytes are put back when the parser has seen the last one and before the stream says `end`, which it does in
 * a later tick than the read that emptied it, and only if it is still empty then.
 */
function readAndPutBack(req: IncomingMessage, maxBytes: number): Promise<BodyReading> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    const done = (body: BodyReading): void => {
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

function putBack(req: IncomingMessage, bytes: Uint8Array, maxBytes: number): BodyReading {
  if (bytes.byteLength === 0) return { kind: "none" };
  req.unshift(bytes);
  if (bytes.byteLength > maxBytes) return { kind: "too-large", length: declaredLength(req) };
  return { kind: "bytes", bytes };
}
