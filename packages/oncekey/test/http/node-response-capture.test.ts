import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { bodyOf, serveCaptured, start } from "./captured-server.js";
import { post } from "./raw-http.js";

describe("what is captured", () => {
  it("keeps order, case and every value of the headers, and knows those of before", async () => {
    const server = await serveCaptured((capture) => (_req, res) => {
      res.setHeader("X-Outer", "1");
      capture(res);
      res.setHeader("Link", ["<a>", "<b>"]);
      res.setHeader("ETag", '"v1"');
      res.appendHeader("Link", "<c>");
      res.end();
    });
    const client = await server.connect();
    client.send(post("/"));
    const capture = await server.capture();
    expect(capture.headersBefore).toEqual([["X-Outer", "1"]]);
    const answer = await capture.ended;
    capture.release();
    const sent = await client.answer();
    const lines = [
      ["X-Outer", "1"],
      ["Link", "<a>"],
      ["Link", "<b>"],
      ["Link", "<c>"],
      ["ETag", '"v1"'],
    ];
    expect(answer).toMatchObject({ headers: lines });
    expect(sent.headers).toEqual(expect.arrayContaining(lines));
  });

  it.each<[string, (res: ServerResponse) => unknown, [string, string][]]>([
    [
      "an object",
      (res) => res.writeHead(202, "Sure", { "X-A": "1", "X-B": ["2", "3"] }),
      [
        ["X-A", "1"],
        ["X-B", "2"],
        ["X-B", "3"],
      ],
    ],
    [
      "a flat list",
      (res) => res.writeHead(202, "Sure", ["X-A", "1", "X-A", "2"]),
      [
        ["X-A", "1"],
        ["X-A", "2"],
      ],
    ],
    [
      "a list of pairs",
      (res) =>
        res.writeHead(202, "Sure", [
          ["X-A", "1"],
          ["X-A", "2"],
        ] as unknown as string[]),
      [
        ["X-A", "1"],
        ["X-A", "2"],
      ],
    ],
    [
      "fields over those set before",
      (res) => res.setHeader("X-A", "0").setHeader("X-B", "2").writeHead(202, "Sure", { "x-a": 1 }),
      [
        ["x-a", "1"],
        ["X-B", "2"],
      ],
    ],
  ])("sees the headers given to writeHead as %s", async (_name, head, lines) => {
    const { server, client } = await start((_req, res) => {
      head(res);
      res.end("ok");
    });
    client.send(post("/"));
    const capture = await server.capture();
    expect(await capture.ended).toMatchObject({ status: 202, headers: lines });
    capture.release();
    const sent = await client.answer();
    expect([sent.status, sent.reason]).toEqual([202, "Sure"]);
    expect(sent.headers.filter(([name]) => /^x-/i.test(name))).toEqual(lines);
  });

  it("copies chunks whose buffer is used again, and decodes strings as Node does", async () => {
    const { server, client } = await start((_req, res) => {
      const buffer = Buffer.from("reused");
      res.setHeader("Content-Length", "13");
      res.write("é", "latin1");
      res.write("ff00", "hex");
      res.write("é");
      res.write("YQ==", "base64");
      res.write(new Uint8Array([1]));
      res.end(buffer);
      buffer.fill("x");
    });
    client.send(post("/"));
    const capture = await server.capture();
    const expected = Buffer.from([0xe9, 0xff, 0x00, 0xc3, 0xa9, 0x61, 1, ...Buffer.from("reused")]);
    const answer = await capture.ended;
    expect(answer).toMatchObject({ kind: "answered", body: new Uint8Array(expected) });
    capture.release();
    expect((await client.answer()).body).toEqual(expected);
  });

  it("passes a body beyond the limit whole and keeps none of it", async () => {
    const { server, client } = await start(
      (_req, res) => {
        res.write("123456");
        res.end("7890");
      },
      { maxResultBytes: 9 },
    );
    client.send(post("/"));
    const capture = await server.capture();
    expect(await capture.ended).toMatchObject({ kind: "answered", status: 200, body: undefined });
    capture.release();
    expect((await client.answer()).body.toString()).toBe("1234567890");
  });

  it("keeps a body of exactly the limit", async () => {
    const { server, client } = await start((_req, res) => void res.end("123456789"), { maxResultBytes: 9 });
    client.send(post("/"));
    const capture = await server.capture();
    expect(bodyOf(await capture.ended)).toBe("123456789");
    capture.release();
    await client.answer();
  });
});
