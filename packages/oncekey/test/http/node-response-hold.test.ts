import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { bodyOf, settle, start } from "./captured-server.js";
import { post } from "./raw-http.js";

describe("what is held back", () => {
  it("holds an answer that comes as one until it is let go", async () => {
    const { server, client } = await start((_req, res) => {
      res.statusCode = 201;
      res.setHeader("Location", "/orders/1");
      res.end("made");
    });
    client.send(post("/"));
    const capture = await server.capture();
    const answer = await capture.ended;
    expect(answer).toMatchObject({ kind: "answered", status: 201, headers: [["Location", "/orders/1"]] });
    expect(bodyOf(answer)).toBe("made");
    await settle();
    expect(client.received()).toBe("");
    expect(capture.headSent()).toBe(false);

    capture.release();
    const sent = await client.answer();
    expect([sent.status, sent.reason, sent.header("content-length"), sent.body.toString()]).toEqual([
      201,
      "Created",
      "4",
      "made",
    ]);
  });

  it("lets a stream pass at once and holds only its end marker", async () => {
    const { server, client } = await start((_req, res) => {
      res.write("one,");
      res.write("two,");
      res.end("three");
    });
    client.send(post("/"));
    const capture = await server.capture();
    await client.until("three\r\n");
    expect(client.received()).toContain("one,");
    expect(client.received()).not.toContain("0\r\n\r\n");
    expect(capture.headSent()).toBe(true);
    expect(bodyOf(await capture.ended)).toBe("one,two,three");

    capture.release();
    expect((await client.answer()).body.toString()).toBe("one,two,three");
  });

  it("holds the chunk that reaches the Content-Length, before the handler has ended", async () => {
    let end = (): void => {};
    const { server, client } = await start((_req, res) => {
      res.writeHead(200, { "Content-Length": 9 });
      res.write("abc");
      setTimeout(() => {
        res.write("def");
        res.write("ghi");
        end = () => res.end();
      }, 5);
    });
    client.send(post("/"));
    const capture = await server.capture();
    expect(bodyOf(await capture.ended)).toBe("abcdefghi");
    await client.until("abcdef");
    await settle();
    expect(client.received()).not.toContain("ghi");

    capture.release();
    expect((await client.answer()).body.toString()).toBe("abcdefghi");
    end();
    client.send(post("/again"));
    await (await server.capture()).ended;
  });

  it("lets a pipe with a length go on to its end", async () => {
    const { server, client } = await start((_req, res) => {
      res.setHeader("Content-Length", 6);
      Readable.from(["abc", "def"], { objectMode: false }).pipe(res);
    });
    for (let request = 0; request < 2; request++) {
      client.send(post("/"));
      const capture = await server.capture();
      await capture.ended;
      capture.release();
      expect((await client.answer()).body.toString()).toBe("abcdef");
    }
  });

  it("ends a response that was ended between reaching its length and being let go", async () => {
    const finished: string[] = [];
    const { server, client } = await start((_req, res) => {
      res.once("finish", () => finished.push("finish"));
      res.setHeader("Content-Length", "2");
      res.write("ok");
      res.end(() => finished.push("callback"));
    });
    client.send(post("/"));
    const capture = await server.capture();
    await capture.ended;
    capture.release();
    expect((await client.answer()).body.toString()).toBe("ok");
    await settle();
    expect(finished).toEqual(["finish", "callback"]);
  });

  it.each([
    ["204", (res: ServerResponse) => res.writeHead(204), "POST"],
    ["304", (res: ServerResponse) => res.writeHead(304), "POST"],
    ["a length of 0", (res: ServerResponse) => res.writeHead(200, { "Content-Length": "0" }), "POST"],
    ["HEAD", (res: ServerResponse) => res.writeHead(200, { "Content-Length": "5" }), "HEAD"],
  ])("holds the head of a message that has no more: %s", async (_name, head, method) => {
    const { server, client } = await start((_req, res) => {
      head(res);
      res.flushHeaders();
      res.write("no body");
      res.end("none");
    });
    client.send(post("/").replace("POST", method));
    const capture = await server.capture();
    const answer = await capture.ended;
    expect(bodyOf(answer)).toBe("");
    await settle();
    expect(client.received()).toBe("");
    capture.release();
    expect((await client.answer({ toHead: method === "HEAD" })).body).toHaveLength(0);
  });

  it("sends the head at once when it is flushed", async () => {
    let go = (): void => {};
    const { server, client } = await start((_req, res) => {
      res.setHeader("Content-Type", "text/event-stream");
      res.flushHeaders();
      go = () => {
        res.write("data: 1\n\n");
        res.end();
      };
    });
    client.send(post("/"));
    const capture = await server.capture();
    await client.until("\r\n\r\n");
    expect(capture.headSent()).toBe(true);
    go();
    await client.until("data: 1");
    expect(bodyOf(await capture.ended)).toBe("data: 1\n\n");
    capture.release();
    await client.answer();
  });

  it("holds the end of the connection that ends an answer to HTTP/1.0", async () => {
    const { server, client } = await start((_req, res) => {
      res.write("old ");
      res.end("times");
    });
    client.send("POST / HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
    const capture = await server.capture();
    await client.until("old times");
    expect(bodyOf(await capture.ended)).toBe("old times");
    capture.release();
    const sent = await client.answer();
    expect(sent.body.toString()).toBe("old times");
    expect(sent.header("transfer-encoding")).toBeUndefined();
  });

  it("keeps the answers of a pipelined connection in order, whichever is let go first", async () => {
    const { server, client } = await start((req, res) => {
      res.end(`answer to ${req.url}`);
    });
    client.send(post("/first") + post("/second") + post("/third"));
    const captures = [await server.capture(), await server.capture(), await server.capture()];
    for (const capture of captures) await capture.ended;
    for (const capture of captures.reverse()) {
      await settle();
      expect(client.received()).toBe("");
      capture.release();
    }
    const bodies = [await client.answer(), await client.answer(), await client.answer()].map(
      (sent) => `${sent.body}`,
    );
    expect(bodies).toEqual(["answer to /first", "answer to /second", "answer to /third"]);
  });

  it("does not hold interim answers", async () => {
    const { server, client } = await start((req, res) => {
      res.writeProcessing();
      res.writeEarlyHints({ link: "</style.css>; rel=preload" });
      req.resume().once("end", () => res.end("done"));
    });
    client.send(post("/", "body", ["Expect: 100-continue"]));
    const capture = await server.capture();
    await client.until("103 Early Hints");
    await capture.ended;
    expect(capture.headSent()).toBe(false);
    capture.release();
    const sent = await client.answer();
    expect(sent.interim).toEqual([100, 102, 103]);
    expect(sent.body.toString()).toBe("done");
  });

  it("sends trailers with the end", async () => {
    const { server, client } = await start((_req, res) => {
      res.setHeader("Trailer", "Digest");
      res.write("body");
      res.addTrailers({ Digest: "abc" });
      res.end();
      res.addTrailers({ Digest: "late" });
    });
    client.send(post("/"));
    const capture = await server.capture();
    await capture.ended;
    capture.release();
    expect((await client.answer()).trailers).toEqual([["Digest", "abc"]]);
  });
});
