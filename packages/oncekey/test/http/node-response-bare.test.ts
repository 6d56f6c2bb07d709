import { describe, expect, it } from "vitest";
import { type Handler, settle, start } from "./captured-server.js";
import { listen, post } from "./raw-http.js";

describe("beside a bare response", () => {
  const handlers: Record<string, Handler> = {
    "end with nothing": (_req, res) => res.end(),
    "end with text": (_req, res) => res.end("text"),
    "end with an empty text": (_req, res) => res.end(""),
    "end after writeHead": (_req, res) => res.writeHead(404, { "X-A": "1" }).end("text"),
    "a phrase of its own": (_req, res) => res.writeHead(299, "Odd").end("text"),
    "a phrase that is set": (_req, res) =>
      Object.assign(res, { statusCode: 299, statusMessage: "Odd" }).end(),
    chunks: (_req, res) => {
      res.write("a");
      res.write(Buffer.from("b"));
      res.end("c");
    },
    "an empty chunk": (_req, res) => {
      res.write("");
      res.end("c");
    },
    "204 with a body": (_req, res) => res.writeHead(204).end("ignored"),
    "304": (_req, res) => res.writeHead(304, { ETag: '"1"' }).end(),
    "no content length": (_req, res) => {
      res.removeHeader("Content-Length");
      res.end("text");
    },
    "no framing": (_req, res) => {
      res.removeHeader("Transfer-Encoding");
      res.write("te");
      res.end("xt");
    },
    "a closed connection": (_req, res) => res.setHeader("Connection", "close").end("text"),
    "no date": (_req, res) => Object.assign(res, { sendDate: false }).end("text"),
    corked: (_req, res) => {
      res.cork();
      res.write("a");
      res.write("b");
      process.nextTick(() => {
        res.uncork();
        res.end();
      });
    },
    cookies: (_req, res) => res.setHeader("Set-Cookie", ["a=1", "b=2"]).end("text"),
  };

  it.each(Object.keys(handlers))("the same bytes leave: %s", async (name) => {
    const handler = handlers[name] ?? (() => {});
    const plain = await listen(handler);
    const { server, client } = await start(handler);
    for (const request of [post("/"), "HEAD / HTTP/1.1\r\nHost: test\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"]) {
      const bare = await plain.connect();
      bare.send(request);
      const other = request === post("/") ? client : await server.connect();
      other.send(request);
      const capture = await server.capture();
      await capture.ended;
      capture.release();
      await settle();
      expect(dateless(other.received())).toBe(dateless(bare.received()));
      expect(other.received()).toContain("HTTP/1.1 ");
    }
  });

  function dateless(bytes: string): string {
    return bytes.replace(/Date: [^\r]*\r\n/, "");
  }
});
