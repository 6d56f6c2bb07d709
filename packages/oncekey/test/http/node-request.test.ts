import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import express, { type RequestHandler } from "express";
import express4 from "express4";
import multer from "multer";
import { describe, expect, it } from "vitest";
import { fieldLines, peekBody } from "../../src/http/node-request.js";
import type { BodyReading } from "../../src/http/port.js";
import { listen, post, type RawClient, type TestServer } from "./raw-http.js";

const LIMIT = 64 * 1024;

interface Seen {
  readonly body: BodyReading;
  /** What the handler read afterwards. */
  readonly read: string;
}

/** Peeks, then reads as `read` does. The answer is what both saw. */
async function peeking(
  read: (req: IncomingMessage) => Promise<string>,
): Promise<{ server: TestServer; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = await listen(async (req, res) => {
    const body = await peekBody(req, LIMIT);
    if (body.kind === "aborted") {
      seen.push({ body, read: "" });
      return;
    }
    seen.push({ body, read: await read(req) });
    res.end();
  });
  return { server, seen };
}

function onData(req: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    let all = "";
    req.on("data", (chunk: Buffer) => {
      all += chunk.toString("latin1");
    });
    req.on("end", () => resolve(all));
  });
}

async function onReadable(req: IncomingMessage): Promise<string> {
  let all = "";
  req.on("readable", () => {
    for (let chunk: Buffer | null = req.read(); chunk !== null; chunk = req.read())
      all += chunk.toString("latin1");
  });
  await once(req, "end");
  return all;
}

const readers: [string, (req: IncomingMessage) => Promise<string>][] = [
  ["data events", onData],
  ["readable events", onReadable],
  ["for await", (req) => text(req)],
  [
    "for await, later",
    async (req) => {
      await new Promise((resolve) => setTimeout(resolve, 10));
      return text(req);
    },
  ],
];

const chunkedHead = "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

async function sendSlowly(client: RawClient, ...parts: string[]): Promise<void> {
  for (const part of parts) {
    client.send(part);
    await pause();
  }
}

describe.each(readers)("a body that is read by %s afterwards", (_name, read) => {
  it.each<[string, string[], string]>([
    ["in one piece", [post("/", "hello")], "hello"],
    ["after its head", [post("/", "hello").slice(0, -5), "hello"], "hello"],
    ["in pieces", [post("/", "hello").slice(0, -4), "el", "lo"], "hello"],
    ["in chunks", [`${chunkedHead}5\r\nhello\r\n0\r\n\r\n`], "hello"],
    ["in slow chunks", [chunkedHead, "2\r\nhe\r\n", "3\r\nllo\r\n", "0\r\n\r\n"], "hello"],
    ["in chunks with a late end", [`${chunkedHead}5\r\nhello\r\n`, "0\r\n\r\n"], "hello"],
    ["of just the limit", [post("/", "x".repeat(LIMIT))], "x".repeat(LIMIT)],
  ])("that comes %s is seen and read", async (_how, parts, expected) => {
    const { server, seen } = await peeking(read);
    const client = await server.connect();
    await sendSlowly(client, ...parts);
    expect((await client.answer()).status).toBe(200);
    expect(seen).toMatchObject([{ body: { kind: "bytes" }, read: expected }]);
    const [first] = seen;
    expect(first?.body.kind === "bytes" && Buffer.from(first.body.bytes).toString()).toBe(expected);
  });

  it.each<[string, string[]]>([
    ["is not there", ["POST / HTTP/1.1\r\nHost: test\r\n\r\n"]],
    ["has a length of 0", [post("/")]],
    ["is chunked and empty", [`${chunkedHead}0\r\n\r\n`]],
    ["is chunked and turns out empty later", [chunkedHead, "0\r\n\r\n"]],
  ])("that %s is none", async (_how, parts) => {
    const { server, seen } = await peeking(read);
    const client = await server.connect();
    await sendSlowly(client, ...parts);
    expect((await client.answer()).status).toBe(200);
    expect(seen).toEqual([{ body: { kind: "none" }, read: "" }]);
  });

  it.each<[string, (body: string) => string, number | undefined]>([
    ["with a length", (body) => post("/", body), 10 * LIMIT],
    ["in chunks", (body) => `${chunkedHead}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`, undefined],
  ])("that is too large %s can still be read whole", async (_how, request, length) => {
    const body = "0123456789".repeat(LIMIT);
    const { server, seen } = await peeking(read);
    const client = await server.connect();
    client.send(request(body));
    expect((await client.answer()).status).toBe(200);
    expect(seen[0]?.body).toEqual({ kind: "too-large", length });
    expect(seen[0]?.read === body).toBe(true);
  });

  it("keeps the next request of the connection in step", async () => {
    const { server, seen } = await peeking(read);
    const client = await server.connect();
    client.send(post("/", "first") + post("/") + post("/", "third"));
    for (let request = 0; request < 3; request++) await client.answer();
    expect(seen.map((one) => one.read).sort()).toEqual(["", "first", "third"]);
  });
});

describe("a body that is bytes", () => {
  it("is seen byte for byte", async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const { server, seen } = await peeking(onData);
    const client = await server.connect();
    client.send(`POST / HTTP/1.1\r\nHost: test\r\nContent-Length: ${bytes.length}\r\n\r\n`);
    client.send(bytes);
    await client.answer();
    expect(seen[0]?.body).toEqual({ kind: "bytes", bytes });
    expect(seen[0]?.read).toBe(bytes.toString("latin1"));
  });

  it("is told again to whoever asks again, also after it was read", async () => {
    const answers: BodyReading[] = [];
    const server = await listen(async (req, res) => {
      answers.push(await peekBody(req, LIMIT));
      await text(req);
      answers.push(await peekBody(req, LIMIT));
      res.end();
    });
    const client = await server.connect();
    client.send(post("/", "hello"));
    await client.answer();
    expect(answers).toEqual([answers[0], answers[0]]);
    expect(answers[0]?.kind).toBe("bytes");
  });
});

describe("a client that leaves before its body is all there", () => {
  it.each([
    ["with a length", post("/", "hello").slice(0, -1)],
    ["in chunks", `${chunkedHead}5\r\nhello\r\n`],
  ])("is noticed %s", async (_how, part) => {
    const { server, seen } = await peeking(onData);
    const client = await server.connect();
    client.send(part);
    await pause();
    client.destroy();
    while (seen.length === 0) await pause();
    expect(seen).toEqual([{ body: { kind: "aborted" }, read: "" }]);
  });
});

describe("a body that somebody has read before", () => {
  async function peekAfter(
    before: (req: IncomingMessage) => unknown,
    headers: string[] = [],
  ): Promise<BodyReading> {
    let body: BodyReading = { kind: "none" };
    const server = await listen(async (req, res) => {
      await before(req);
      body = await peekBody(req, LIMIT);
      res.end();
    });
    const client = await server.connect();
    client.send(post("/", '{"a":1}', headers));
    await client.answer();
    return body;
  }

  it("is the value that they left", async () => {
    const left = async (req: IncomingMessage): Promise<unknown> =>
      Object.assign(req, { body: JSON.parse(await text(req)) });
    expect(await peekAfter(left)).toEqual({ kind: "parsed", value: { a: 1 } });
  });

  it("is too large by its length, also when it was parsed", async () => {
    let body: BodyReading = { kind: "none" };
    const server = await listen(async (req, res) => {
      Object.assign(req, { body: await text(req) });
      body = await peekBody(req, 4);
      res.end();
    });
    const client = await server.connect();
    client.send(post("/", "hello"));
    await client.answer();
    expect(body).toEqual({ kind: "too-large", length: 5 });
  });

  it("is the bytes, if they kept them", async () => {
    const left = async (req: IncomingMessage): Promise<unknown> =>
      Object.assign(req, { body: {}, rawBody: Buffer.from(await text(req)) });
    expect(await peekAfter(left)).toMatchObject({ kind: "bytes", bytes: Buffer.from('{"a":1}') });
  });

  it.each<[string, (req: IncomingMessage) => unknown, string[]]>([
    ["was not kept", (req) => text(req), []],
    [
      "was multipart, whose files are elsewhere",
      async (req) => Object.assign(req, { body: await text(req) }),
      ["Content-Type: multipart/form-data; boundary=x"],
    ],
    ["is being read", (req) => void req.resume(), []],
    ["was read in part", (req) => once(req, "readable").then(() => req.read(2)), []],
    ["is being decoded", (req) => void req.setEncoding("utf8"), []],
  ])("is gone if it %s", async (_how, before, headers) => {
    expect(await peekAfter(before, headers)).toEqual({ kind: "gone" });
  });
});

describe.each([
  ["express 4", express4],
  ["express 5", express],
])("%s", (_name, make) => {
  async function ask(request: string, ...parsers: RequestHandler[]): Promise<unknown> {
    const app = make();
    app.use((req, _res, next) => void peekBody(req, 10 * 1024 * 1024).then(() => next(), next));
    for (const parser of parsers) app.use(parser);
    app.post("/", (req, res) => {
      const body: unknown = Buffer.isBuffer(req.body) ? req.body.length : req.body;
      res.json({ body, files: (req as { files?: { size: number }[] }).files?.map((file) => file.size) });
    });
    const server = await listen(app);
    const client = await server.connect();
    client.send(request);
    return JSON.parse((await client.answer()).body.toString());
  }
  const json = ["Content-Type: application/json"];

  it("parses JSON after it", async () => {
    expect(await ask(post("/", '{"a":[1]}', json), make.json())).toEqual({ body: { a: [1] } });
  });

  it("parses an empty body after it", async () => {
    const empty = chunkedHead.replace("\r\n\r\n", "\r\nContent-Type: application/json\r\n\r\n0\r\n\r\n");
    for (const request of [empty, post("/", "", json)]) {
      expect([{ body: {} }, {}]).toContainEqual(await ask(request, make.json()));
    }
  });

  it("parses a form after it", async () => {
    const form = post("/", "a=1&b=2", ["Content-Type: application/x-www-form-urlencoded"]);
    expect(await ask(form, make.urlencoded({ extended: false }))).toEqual({ body: { a: "1", b: "2" } });
  });

  it("reads 5 MB of bytes after it", async () => {
    const request = post("/", "x".repeat(5_000_000), ["Content-Type: application/octet-stream"]);
    expect(await ask(request, make.raw({ limit: "10mb" }))).toEqual({ body: 5_000_000 });
  });

  it("takes files after it", async () => {
    const part = (name: string, more: string, value: string): string =>
      `--b\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`;
    const body = `${part("a", "", "1")}${part("f", '; filename="f"', "x".repeat(100_000))}--b--\r\n`;
    const request = post("/", body, ["Content-Type: multipart/form-data; boundary=b"]);
    const files = multer({ storage: multer.memoryStorage() }).any();
    expect(await ask(request, files)).toEqual({ body: { a: "1" }, files: [100_000] });
  });
});

describe("field lines", () => {
  it("are counted, where Node joins them into one value", async () => {
    const seen: unknown[] = [];
    const server = await listen((req, res) => {
      seen.push(
        req.headers["idempotency-key"],
        fieldLines(req, "Idempotency-Key"),
        fieldLines(req, "X-None"),
      );
      res.end();
    });
    const client = await server.connect();
    client.send(post("/", "", ['Idempotency-Key: "a', 'IDEMPOTENCY-KEY:  b"  ']));
    await client.answer();
    expect(seen).toEqual(['"a, b"', ['"a', 'b"'], []]);
  });
});
