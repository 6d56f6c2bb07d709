import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { bodyOf, serveCaptured, settle, start } from "./captured-server.js";
import { post } from "./raw-http.js";

describe("a frozen answer", () => {
  const late: [string, (res: ServerResponse) => void][] = [
    ["another end", (res) => void res.end("late")],
    ["a write", (res) => void res.write("late")],
    ["another head", (res) => void res.writeHead(500, "Late", { "X-Late": "1" })],
    ["a status", (res) => void Object.assign(res, { statusCode: 500, statusMessage: "Late" })],
    ["a header", (res) => void res.setHeader("X-Late", "1").appendHeader("X-First", "late")],
    ["headers", (res) => void res.setHeaders(new Headers({ "x-late": "1" }))],
    ["a header less", (res) => void res.removeHeader("X-First")],
    ["a flush", (res) => void res.flushHeaders()],
    ["a destruction", (res) => void res.destroy(new Error("late"))],
  ];
  const framings: [string, (res: ServerResponse) => void][] = [
    [
      "one that has not left",
      (res) => {
        res.writeHead(201, "Made", { "X-First": "1" });
        res.end("first");
      },
    ],
    [
      "a stream",
      (res) => {
        res.writeHead(201, "Made", { "X-First": "1" });
        res.write("fir");
        res.end("st");
      },
    ],
    [
      "a stream with a length",
      (res) => {
        res.writeHead(201, "Made", { "X-First": "1", "Content-Length": 5 });
        res.write("fir");
        res.end("st");
      },
    ],
  ];
  for (const [framing, answer] of framings) {
    it.each(late)(`${framing} is not altered by %s`, async (_name, alter) => {
      const { server, client } = await start((_req, res) => {
        answer(res);
        alter(res);
        expect(res.headersSent).toBe(false);
        setTimeout(() => alter(res), 1);
        res.once("finish", () => setImmediate(alter, res));
      });
      client.send(post("/"));
      const capture = await server.capture();
      expect(bodyOf(await capture.ended)).toBe("first");
      await settle();
      capture.release();
      const sent = await client.answer();
      expect([sent.status, sent.reason, sent.body.toString()]).toEqual([201, "Made", "first"]);
      expect([sent.header("x-first"), sent.header("x-late")]).toEqual(["1", undefined]);
      await settle();
    });
  }

  it("may be ended later by an outer layer, which still adds to its head", async () => {
    const server = await serveCaptured((capture) => (_req, res) => {
      const { end, writeHead } = res;
      res.end = ((...given: Parameters<typeof end>) => {
        setTimeout(() => end.apply(res, given), 5);
        return res;
      }) as typeof end;
      res.writeHead = ((...given: [number]) => {
        res.setHeader("Set-Cookie", "session=1");
        return writeHead.apply(res, given);
      }) as typeof writeHead;
      capture(res);
      res.statusCode = 201;
      res.end("first");
    });
    const client = await server.connect();
    client.send(post("/"));
    const capture = await server.capture();
    await capture.ended;
    capture.release();
    const sent = await client.answer();
    expect([sent.status, sent.header("set-cookie"), `${sent.body}`]).toEqual([201, "session=1", "first"]);
  });

  it("is destroyed after it was sent, if the handler destroyed it after its end", async () => {
    const { server, client } = await start((_req, res) => {
      res.end("x".repeat(5_000_000));
      res.destroy();
    });
    client.send(post("/"));
    const capture = await server.capture();
    expect(await capture.ended).toMatchObject({ kind: "answered", body: undefined });
    capture.release();
    expect((await client.answer()).body).toHaveLength(5_000_000);
    await client.closed;
  });

  it("is let go once", async () => {
    const { server, client } = await start((_req, res) => void res.end("once"));
    client.send(post("/"));
    const capture = await server.capture();
    await capture.ended;
    capture.release();
    capture.release();
    expect(capture.replaceWith({ status: 503, headers: [], body: Buffer.from("no") })).toBe(false);
    await client.answer();
    await settle();
    expect(client.received()).toBe("");
  });
});

describe("a replaced answer", () => {
  it("takes the place of one that has not left, beside the outer headers", async () => {
    const { server, client } = await start((_req, res) => {
      res.writeHead(200, "Fine", {
        "X-Handler": "1",
        "Content-Type": "text/plain",
        "Content-Length": "4",
        Date: "never",
      });
      res.end("mine");
    });
    client.send(post("/") + post("/"));
    for (let round = 0; round < 2; round++) {
      const capture = await server.capture();
      await capture.ended;
      const headers = [
        ["Retry-After", "1"],
        ["Link", "<a>"],
        ["Link", "<b>"],
      ] as const;
      expect(capture.replaceWith({ status: 503, headers, body: Buffer.from("later") })).toBe(true);
      capture.release();
      const sent = await client.answer();
      expect([sent.status, sent.reason, sent.body.toString()]).toEqual([503, "Service Unavailable", "later"]);
      expect(sent.headers).toEqual(expect.arrayContaining(headers.map((line) => [...line])));
      expect([sent.header("x-handler"), sent.header("content-length")]).toEqual([undefined, "5"]);
      expect(sent.header("date")).toMatch(/GMT$/);
    }
  });

  it("does not take the place of one whose head has left", async () => {
    const { server, client } = await start((_req, res) => {
      res.write("first ");
      res.end("answer");
    });
    client.send(post("/"));
    const capture = await server.capture();
    await capture.ended;
    expect(capture.replaceWith({ status: 503, headers: [], body: Buffer.from("no") })).toBe(false);
    capture.release();
    expect((await client.answer()).body.toString()).toBe("first answer");
  });

  it("may have no body", async () => {
    const { server, client } = await start((_req, res) => void res.end("mine"));
    client.send(post("/") + post("/"));
    for (const status of [204, 200]) {
      const capture = await server.capture();
      await capture.ended;
      capture.replaceWith({ status, headers: [], body: new Uint8Array() });
      const sent = await client.answer();
      expect([sent.status, sent.header("content-length")]).toEqual([
        status,
        status === 204 ? undefined : "0",
      ]);
    }
  });
});
