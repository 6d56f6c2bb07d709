import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { settle, start } from "./captured-server.js";
import { post } from "./raw-http.js";

describe("what the handler sees", () => {
  it("gets its callbacks, and finish and close once each", async () => {
    const seen: string[] = [];
    const { server, client } = await start((_req, res) => {
      for (const event of ["prefinish", "finish", "close"]) res.on(event, () => seen.push(event));
      res.write("a", () => seen.push("write"));
      res.write("b", "utf8", () => seen.push("write with encoding"));
      res.end("c", () => seen.push("end"));
      res.end(() => seen.push("second end"));
    });
    client.send(post("/", "", ["Connection: close"]));
    const capture = await server.capture();
    await capture.ended;
    await settle();
    expect(seen.filter((event) => !event.startsWith("write"))).toEqual([]);
    capture.release();
    await client.answer();
    await client.closed;
    await settle();
    expect(seen.sort()).toEqual(
      ["write", "write with encoding", "prefinish", "finish", "end", "second end", "close"].sort(),
    );
  });

  it("gets the callback of a chunk that is held, so that it can go on to end", async () => {
    const { server, client } = await start(async (_req, res) => {
      res.setHeader("Content-Length", "2");
      await new Promise((resolve) => res.write("ok", resolve));
      res.end();
    });
    client.send(post("/"));
    const capture = await server.capture();
    await capture.ended;
    await settle();
    capture.release();
    expect((await client.answer()).body.toString()).toBe("ok");
  });

  it("finds its head made after writeHead, and cannot make it again", async () => {
    const seen: unknown[] = [];
    const { server, client } = await start((_req, res) => {
      seen.push(res.headersSent);
      res.writeHead(200, { "X-A": "1" });
      seen.push(res.headersSent);
      for (const again of [() => res.writeHead(500), () => res.setHeader("X-A", "2")]) {
        try {
          again();
        } catch (error) {
          seen.push((error as NodeJS.ErrnoException).code);
        }
      }
      res.end("ok");
      seen.push(res.writableEnded);
    });
    client.send(post("/"));
    const capture = await server.capture();
    await capture.ended;
    expect(seen).toEqual([false, true, "ERR_HTTP_HEADERS_SENT", "ERR_HTTP_HEADERS_SENT", true]);
    capture.release();
    const sent = await client.answer();
    expect([sent.status, sent.header("x-a"), sent.body.toString()]).toEqual([200, "1", "ok"]);
  });

  it.each<[string, (res: ServerResponse) => void, string]>([
    ["a status that is none", (res) => void res.writeHead(1000), "ERR_HTTP_INVALID_STATUS_CODE"],
    [
      "a status that is none, set",
      (res) => void Object.assign(res, { statusCode: 99 }).end(),
      "ERR_HTTP_INVALID_STATUS_CODE",
    ],
    [
      "a header without a value",
      (res) => void res.writeHead(200, { "X-A": undefined }),
      "ERR_HTTP_INVALID_HEADER_VALUE",
    ],
    ["a header with a line break", (res) => void res.writeHead(200, { "X-A": "a\nb" }), "ERR_INVALID_CHAR"],
    ["a phrase with a line break", (res) => void res.writeHead(200, "a\nb"), "ERR_INVALID_CHAR"],
    ["a chunk that is null", (res) => void res.write(null), "ERR_STREAM_NULL_VALUES"],
    ["a chunk that is a number", (res) => void res.end(42 as unknown as string), "ERR_INVALID_ARG_TYPE"],
  ])("is told at once of %s, and can still answer", async (_name, mistake, code) => {
    let thrown: unknown;
    const { server, client } = await start((_req, res) => {
      try {
        mistake(res);
      } catch (error) {
        thrown = error;
      }
      res.statusCode = 500;
      res.statusMessage = "";
      res.end("sorry");
    });
    client.send(post("/"));
    const capture = await server.capture();
    expect(await capture.ended).toMatchObject({ kind: "answered", status: 500 });
    expect(thrown).toMatchObject({ code });
    capture.release();
    expect((await client.answer()).body.toString()).toBe("sorry");
  });
});

describe("an aborted answer", () => {
  it.each<[string, (res: ServerResponse) => void, number | undefined]>([
    ["destroyed before its head", (res) => void res.destroy(), undefined],
    [
      "destroyed in the middle",
      (res) => {
        res.writeHead(201);
        res.write("half");
        res.destroy(new Error("broken"));
      },
      201,
    ],
    [
      "cut by its socket",
      (res) => {
        res.write("half");
        res.socket?.destroy();
      },
      200,
    ],
  ])("is one that was %s", async (_name, spoil, status) => {
    const { server, client } = await start((req, res) => {
      req.resume();
      setImmediate(spoil, res);
    });
    client.send(post("/"));
    const capture = await server.capture();
    expect(await capture.ended).toEqual({ kind: "aborted", status });
    await client.closed;
    expect(client.received()).not.toContain("0\r\n\r\n");
  });

  it("is one that is shorter than its Content-Length", async () => {
    const { server, client } = await start((_req, res) => {
      res.setHeader("Content-Length", "10");
      res.end("short");
    });
    client.send(post("/"));
    const capture = await server.capture();
    expect(await capture.ended).toEqual({ kind: "aborted", status: 200 });
    capture.release();
    await client.until("short");
  });
});
