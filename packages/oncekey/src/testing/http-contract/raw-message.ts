/**
 * @module
 * HTTP/1.1 messages as bytes: writes a request, reads a response.
 *
 * Invariant: nothing is normalised or forgiven. Header lines keep their order, their number and the case of
 * their names, a body is not decoded, and a response that breaks RFC 9112 is an error. Connections are left to
 * `raw-client.ts`.
 */

export type HeaderLine = readonly [name: string, value: string];

export interface RawRequest {
  readonly method: string;
  /** Path and query, as they are sent. */
  readonly path: string;
  /** Beside `Host`, `Connection: close` and, for a body without `Transfer-Encoding`, its length. */
  readonly headers?: readonly HeaderLine[] | undefined;
  readonly body?: string | Uint8Array | undefined;
}

export interface RawResponse {
  readonly status: number;
  /** As sent, in order. Each character is one byte (ISO 8859-1). */
  readonly headers: readonly HeaderLine[];
  readonly body: Buffer;
  /** Whether the message ended as its framing says; `false` if the connection broke before. */
  readonly complete: boolean;
}

class RawMessageError extends Error {}

/** Header values are written byte by byte, so that a request can hold what no client library would send. */
export function requestBytes({ method, path, headers = [], body }: RawRequest): Buffer {
  const lines = [`${method} ${path} HTTP/1.1`, "Host: 127.0.0.1", "Connection: close"];
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  const content = typeof body === "string" ? Buffer.from(body) : Buffer.from(body ?? []);
  const framed = headers.some(([name]) => /^(?:content-length|transfer-encoding)$/i.test(name));
  if (body !== undefined && !framed) lines.push(`Content-Length: ${content.length}`);
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), content]);
}

/** All values of a field, in order. */
export function fieldValues({ headers }: Pick<RawResponse, "headers">, name: string): string[] {
  return headers.filter(([other]) => other.toLowerCase() === name.toLowerCase()).map(([, value]) => value);
}

/** The value of a field that is there at most once. */
export function fieldValue(response: Pick<RawResponse, "headers">, name: string): string | undefined {
  const values = fieldValues(response, name);
  if (values.length > 1) throw new RawMessageError(`${name} was sent ${values.length} times`);
  return values[0];
}

/**
 * Reads what has arrived so far.
 *
 * @param ended whether nothing more will come.
 * @returns `undefined` while the head is not there.
 * @throws RawMessageError if it is not a response, or something follows it.
 */
export function readResponse(method: string, bytes: Buffer, ended: boolean): RawResponse | undefined {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd === -1) return undefined;
  const [statusLine = "", ...lines] = bytes.toString("latin1", 0, headEnd).split("\r\n");
  const status = Number(
    /^HTTP\/1\.1 (\d{3}) [^\r\n]*$/.exec(statusLine)?.[1] ?? fail(`status line ${statusLine}`),
  );
  const rest = bytes.subarray(headEnd + 4);
  // Interim responses (RFC 9110 §15.2) come before the one that is meant.
  if (status < 200) return readResponse(method, rest, ended);
  const headers = lines.map(readHeaderLine);
  const framing = framingOf(method, status, headers);
  const { body, complete, length } = readBody(framing, rest, ended);
  if (complete && length < rest.length) fail("bytes after the end of the message");
  return { status, headers, body, complete };
}

function readHeaderLine(line: string): HeaderLine {
  const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
  return name === undefined || value === undefined ? fail(`header line ${line}`) : [name, value];
}

type Framing =
  | { readonly kind: "none" | "chunked" | "close" }
  | { readonly kind: "length"; readonly length: number };

/** RFC 9112 §6.3. */
function framingOf(method: string, status: number, headers: readonly HeaderLine[]): Framing {
  const coding = fieldValue({ headers }, "transfer-encoding");
  const length = fieldValue({ headers }, "content-length");
  if (coding !== undefined && length !== undefined) fail("both Transfer-Encoding and Content-Length");
  if (length !== undefined && !/^\d+$/.test(length)) fail(`Content-Length ${length}`);
  if (method === "HEAD" || status === 204 || status === 304) {
    if (status === 204 && (coding ?? length) !== undefined) fail("framing of a 204 (RFC 9110 §8.6)");
    return { kind: "none" };
  }
  if (length !== undefined) return { kind: "length", length: Number(length) };
  if (coding === undefined) return { kind: "close" };
  return coding.toLowerCase() === "chunked" ? { kind: "chunked" } : fail(`Transfer-Encoding ${coding}`);
}

interface ReadBody {
  readonly body: Buffer;
  readonly complete: boolean;
  /** How much of what came is this message's. */
  readonly length: number;
}

function readBody(framing: Framing, rest: Buffer, ended: boolean): ReadBody {
  switch (framing.kind) {
    case "none":
      return { body: Buffer.alloc(0), complete: true, length: 0 };
    case "close":
      return { body: rest, complete: ended, length: rest.length };
    case "length":
      return {
        body: rest.subarray(0, framing.length),
        complete: rest.length >= framing.length,
        length: framing.length,
      };
    case "chunked":
      return readChunks(rest);
  }
}

/** RFC 9112 §7.1, without extensions and trailers, which nothing here has to send. */
function readChunks(rest: Buffer): ReadBody {
  const chunks: Buffer[] = [];
  let offset = 0;
  for (;;) {
    const lineEnd = rest.indexOf("\r\n", offset);
    if (lineEnd === -1) return { body: Buffer.concat(chunks), complete: false, length: rest.length };
    const line = rest.toString("latin1", offset, lineEnd);
    if (!/^[\da-f]{1,8}$/i.test(line)) fail(`chunk size ${line}`);
    const size = Number.parseInt(line, 16);
    const end = lineEnd + 2 + size;
    chunks.push(rest.subarray(lineEnd + 2, end));
    if (rest.length < end + 2) return { body: Buffer.concat(chunks), complete: false, length: rest.length };
    if (rest.toString("latin1", end, end + 2) !== "\r\n") fail("no end of line after a chunk");
    offset = end + 2;
    if (size === 0) return { body: Buffer.concat(chunks), complete: true, length: offset };
  }
}

function fail(what: string): never {
  throw new RawMessageError(`Not a valid response: ${what}`);
}
