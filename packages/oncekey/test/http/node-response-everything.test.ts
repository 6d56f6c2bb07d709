import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { bodyOf, settle, start } from "./captured-server.js";
import { post } from "./raw-http.js";

describe("holding everything", () => {
  it("lets nothing leave before, and then all of it", async () => {
    const { server, client } = await start(
      (_req, res) => {
        res.writeHead(201, { "X-A": "1" });
        res.flushHeaders();
        expect(res.write("one,")).toBe(true);
        res.write("two");
        res.end(",three");
      },
      { hold: "everything" },
    );
    client.send(post("/"));
    const capture = await server.capture();
    expect(bodyOf(await capture.ended)).toBe("one,two,three");
    await settle();
    expect(client.received()).toBe("");
    expect(capture.headSent()).toBe(false);
    capture.release();
    const sent = await client.answer();
    expect([sent.status, sent.header("x-a"), sent.body.toString()]).toEqual([201, "1", "one,two,three"]);
  });

  it("replaces an answer that was written in parts", async () => {
    const { server, client } = await start(
      (_req, res) => {
        res.write("one,");
        res.end("two");
      },
      { hold: "everything" },
    );
    client.send(post("/"));
    const capture = await server.capture();
    await capture.ended;
    capture.replaceWith({ status: 503, headers: [], body: Buffer.from("refused") });
    const sent = await client.answer();
    expect([sent.status, sent.body.toString()]).toEqual([503, "refused"]);
  });

  it("sends a body that came whole, however large", async () => {
    const { server, client } = await start((_req, res) => void res.end("x".repeat(50)), {
      hold: "everything",
      maxResultBytes: 10,
    });
    client.send(post("/"));
    const capture = await server.capture();
    expect(await capture.ended).toMatchObject({ kind: "answered", body: undefined });
    capture.release();
    expect((await client.answer()).body).toHaveLength(50);
  });

  it.each<[string, (res: ServerResponse) => void]>([
    [
      "a stream that outgrows the limit",
      (res) => {
        res.write("x".repeat(6));
        res.write("x".repeat(6));
        res.end();
      },
    ],
    [
      "an event stream",
      (res) => {
        res.setHeader("Content-Type", "text/event-stream");
        res.flushHeaders();
      },
    ],
    [
      "an event stream that is not flushed",
      (res) => {
        res.setHeader("Content-Type", "text/event-stream; charset=utf-8");
        res.write(":");
      },
    ],
  ])("gives up on %s, which is then replaced", async (_name, stream) => {
    const { server, client } = await start((_req, res) => stream(res), {
      hold: "everything",
      maxResultBytes: 10,
    });
    client.send(post("/"));
    const capture = await server.capture();
    expect(await capture.ended).toEqual({ kind: "outgrown", status: 200 });
    expect(capture.replaceWith({ status: 500, headers: [], body: Buffer.from("too large") })).toBe(true);
    expect((await client.answer()).body.toString()).toBe("too large");
  });
});
