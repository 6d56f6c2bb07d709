/**
 * @module
 * A client that sees what is on the wire: bytes are written as they are given, and answers are read with their
 * framing, interim heads and trailers. Only over loopback.
 */
import { once } from "node:events";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface RawAnswer {
  readonly status: number;
  readonly reason: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
  readonly trailers: readonly (readonly [string, string])[];
  /** Status codes of the interim answers that came before it. */
  readonly interim: readonly number[];
  header(name: string): string | undefined;
}

export interface RawClient {
  /** Everything received and not yet taken by `answer`. */
  received(): string;
  send(bytes: string | Uint8Array): void;
  /** The next complete answer. @throws if the connection closes before it is complete. */
  answer(options?: { readonly toHead?: boolean }): Promise<RawAnswer>;
  /** Waits until what is received contains `text`. */
  until(text: string): Promise<void>;
  closed: Promise<void>;
  /** Hangs up at once. */
  destroy(): void;
}

export interface TestServer {
  readonly port: number;
  readonly server: http.Server;
  connect(): Promise<RawClient>;
}

/** Serves `handler` until the test ends. */
export async function listen(
  handler: http.RequestListener,
  options: http.ServerOptions = {},
): Promise<TestServer> {
  const server = http.createServer(options, handler);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const clients: RawClient[] = [];
  onTestFinished(async () => {
    for (const client of clients) client.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    port,
    server,
    async connect() {
      const client = await connect(port);
      clients.push(client);
      return client;
    },
  };
}

async function connect(port: number): Promise<RawClient> {
  const socket = net.connect(port, "127.0.0.1");
  await once(socket, "connect");
  let buffer = Buffer.alloc(0);
  let ended = false;
  let wake = (): void => {};
  const changed = (): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve;
    });
  socket.on("data", (chunk: Buffer) => {
    buffer = Buffer.concat([buffer, chunk]);
    wake();
  });
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => {
    socket.once("close", () => {
      ended = true;
      wake();
      resolve();
    });
  });
  const client: RawClient = {
    received: () => buffer.toString("latin1"),
    send: (bytes) => void socket.write(bytes),
    async answer({ toHead = false } = {}) {
      for (;;) {
        const parsed = parseAnswer(buffer, ended, toHead);
        if (parsed !== undefined) {
          buffer = buffer.subarray(parsed.length);
          return parsed.answer;
        }
        if (ended) throw new Error(`Connection closed after ${JSON.stringify(client.received())}`);
        await changed();
      }
    },
    async until(text) {
      while (!client.received().includes(text)) {
        if (ended) throw new Error(`Connection closed after ${JSON.stringify(client.received())}`);
        await changed();
      }
    },
    closed,
    destroy: () => void socket.destroy(),
  };
  return client;
}

/** A request with a body, as one string. */
export function post(path: string, body = "", headers: readonly string[] = []): string {
  const lines = [
    `POST ${path} HTTP/1.1`,
    "Host: test",
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...headers,
  ];
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

interface Parsed {
  readonly answer: RawAnswer;
  readonly length: number;
}

function parseAnswer(bytes: Buffer, ended: boolean, toHead: boolean): Parsed | undefined {
  const interim: number[] = [];
  let offset = 0;
  for (;;) {
    const end = bytes.indexOf("\r\n\r\n", offset);
    if (end < 0) return undefined;
    const [first = "", ...lines] = bytes.toString("latin1", offset, end).split("\r\n");
    const [, code = "", reason = ""] = /^HTTP\/1\.1 (\d{3}) ?(.*)$/.exec(first) ?? [];
    const status = Number(code);
    offset = end + 4;
    if (status >= 100 && status < 200) {
      interim.push(status);
      continue;
    }
    const headers = lines.map(fieldOf);
    const header = (name: string): string | undefined =>
      headers.find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1];
    const content = parseContent(bytes, offset, { status, header, ended, toHead });
    if (content === undefined) return undefined;
    return { answer: { status, reason, headers, header, interim, ...content }, length: content.end };
  }
}

interface Framing {
  readonly status: number;
  readonly ended: boolean;
  readonly toHead: boolean;
  header(name: string): string | undefined;
}

function parseContent(
  bytes: Buffer,
  start: number,
  { status, header, ended, toHead }: Framing,
): (Pick<RawAnswer, "body" | "trailers"> & { end: number }) | undefined {
  const none = { body: Buffer.alloc(0), trailers: [], end: start };
  if (toHead || status === 204 || status === 304) return none;
  if (header("transfer-encoding") === "chunked") return parseChunked(bytes, start);
  const length = header("content-length");
  if (length === undefined)
    return ended ? { ...none, body: bytes.subarray(start), end: bytes.length } : undefined;
  const end = start + Number(length);
  return bytes.length < end ? undefined : { ...none, body: bytes.subarray(start, end), end };
}

function parseChunked(
  bytes: Buffer,
  start: number,
): (Pick<RawAnswer, "body" | "trailers"> & { end: number }) | undefined {
  const chunks: Buffer[] = [];
  let offset = start;
  for (;;) {
    const line = bytes.indexOf("\r\n", offset);
    if (line < 0) return undefined;
    const size = Number.parseInt(bytes.toString("latin1", offset, line), 16);
    if (size === 0) {
      const end = bytes.indexOf("\r\n\r\n", line);
      if (end < 0) return undefined;
      const trailers =
        end === line
          ? []
          : bytes
              .toString("latin1", line + 2, end)
              .split("\r\n")
              .map(fieldOf);
      return { body: Buffer.concat(chunks), trailers, end: end + 4 };
    }
    if (bytes.length < line + 2 + size + 2) return undefined;
    chunks.push(bytes.subarray(line + 2, line + 2 + size));
    offset = line + 2 + size + 2;
  }
}

function fieldOf(line: string): readonly [string, string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon), line.slice(colon + 1).trim()];
}
