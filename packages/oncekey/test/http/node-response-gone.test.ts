import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { PassThrough, pipeline, Readable, Transform } from "node:stream";
import { finished, pipeline as pipelineAsync } from "node:stream/promises";
import { describe, expect, it } from "vitest";
import type { CapturedAnswer } from "../../src/http/node-response.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { bodyOf, hangUp, settle, start } from "./captured-server.js";
import { post } from "./raw-http.js";

const PART = "x".repeat(16 * 1024);
const PARTS = 400;
/** More than every buffer between handler and client can take. */
const LENGTH = PART.length * PARTS;
const LIMITS = { maxResultBytes: LENGTH };

function source(parts = PARTS): Readable {
  let left = parts;
  return new Readable({
    read() {
      this.push(left-- > 0 ? PART : null);
    },
  });
}

/** A client that takes the first part and then leaves. */
async function leaveIn(handler: (res: ServerResponse) => unknown, options = {}): Promise<CapturedAnswer> {
  const { server, client } = await start((_req, res) => handler(res), { ...LIMITS, ...options });
  client.send(post("/"));
  const capture = await server.capture();
  await client.until("xxxx");
  await hangUp(client, server);
  const answer = await capture.ended;
  capture.release();
  return answer;
}

describe("after the client has left", () => {
  it("an answer that the handler gives later is captured", async () => {
    let answer = (): void => {};
    let called = false;
    const { server, client } = await start((_req, res) => {
      answer = () => {
        res.statusCode = 201;
        res.end("for nobody", () => {
          called = true;
        });
      };
    });
    client.send(post("/"));
    const capture = await server.capture();
    await hangUp(client, server);
    answer();
    const captured = await capture.ended;
    expect(captured).toMatchObject({ kind: "answered", status: 201 });
    expect(bodyOf(captured)).toBe("for nobody");
    await settle();
    expect(called).toBe(true);
    expect(capture.headSent()).toBe(false);
    capture.release();
  });

  it("a handler that waits for room in a loop of writes goes on to its end", async () => {
    const answer = await leaveIn(async (res) => {
      for (let part = 0; part < PARTS; part++) {
        if (!res.write(PART)) await once(res, "drain");
      }
      res.end();
    });
    expect(bodyOf(answer)).toHaveLength(LENGTH);
  });

  it("the callbacks of writes are still called", async () => {
    const answer = await leaveIn(async (res) => {
      res.write(PART);
      await once(res, "close");
      for (let part = 1; part < 3; part++) await new Promise((resolve) => res.write(PART, resolve));
      res.end();
    });
    expect(bodyOf(answer)).toHaveLength(3 * PART.length);
  });

  it("a source left behind by pipe is drained", async () => {
    const answer = await leaveIn((res) => {
      res.statusCode = 203;
      source().pipe(res);
    });
    expect(answer).toMatchObject({ status: 203 });
    expect(bodyOf(answer)).toHaveLength(LENGTH);
  });

  it("sources that are piped one after the other are all drained", async () => {
    const answer = await leaveIn(
      async (res) => {
        for (let part = 0; part < 2; part++) {
          const one = source(PARTS / 2);
          one.pipe(res, { end: false });
          await finished(one);
        }
        res.end("!");
      },
      { maxResultBytes: LENGTH + 1 },
    );
    expect(bodyOf(answer)).toHaveLength(LENGTH + 1);
  });

  it("a source that is piped only then is captured", async () => {
    const answer = await leaveIn(async (res) => {
      res.write(PART);
      await once(res, "close");
      source(PARTS - 1).pipe(res);
    });
    expect(bodyOf(answer)).toHaveLength(LENGTH);
  });

  it("the drain of a pipe ends at the limit, and the source is left paused", async () => {
    const endless = source(Number.POSITIVE_INFINITY);
    const answer = await leaveIn((res) => endless.pipe(res));
    expect(answer).toMatchObject({ kind: "answered", status: 200, body: undefined });
    await settle();
    expect(endless.isPaused() || endless.readableFlowing === false).toBe(true);
    endless.destroy();
  });

  it.each<[string, (res: ServerResponse) => unknown]>([
    ["pipeline", (res) => pipeline(source(), res, () => {})],
    ["pipeline with a transform", (res) => pipeline(source(), new PassThrough(), res, () => {})],
    ["the promise of pipeline", (res) => pipelineAsync(source(), res).catch(() => {})],
    [
      "its own error",
      (res) => {
        const broken = source();
        broken.on("error", () => {}).pipe(res);
        res.once("close", () => setTimeout(() => broken.destroy(new Error("broken")), 5));
        // So that it cannot be drained before.
        broken._read = () => {};
        broken.push(PART);
      },
    ],
  ])("a source that %s destroyed ends as an answer without a body", async (_name, answerBy) => {
    const answer = await leaveIn((res) => {
      res.writeHead(201, { Location: "/orders/1" });
      answerBy(res);
    });
    expect(answer).toEqual({
      kind: "answered",
      status: 201,
      headers: [["Location", "/orders/1"]],
      body: undefined,
    });
  });

  it("a handler that destroys the response it has begun leaves an answer without a body", async () => {
    const answer = await leaveIn((res) => {
      res.write(PART);
      res.once("close", () => res.destroy());
    });
    expect(answer).toMatchObject({ kind: "answered", body: undefined });
  });

  it("a handler that destroys a response without a head has given no answer", async () => {
    const { server, client } = await start((_req, res) => {
      res.once("close", () => res.destroy());
    });
    client.send(post("/"));
    const capture = await server.capture();
    await hangUp(client, server);
    expect(await capture.ended).toEqual({ kind: "aborted", status: undefined });
  });

  it("a body that has begun and does not end is given up after drainMs", async () => {
    const clock = manualClock();
    const { server, client } = await start(
      (_req, res) => {
        const never = async function* (): AsyncGenerator<string> {
          yield PART;
          await new Promise(() => {});
        };
        pipelineAsync(never(), res).catch(() => {});
      },
      { clock, drainMs: 7_000 },
    );
    client.send(post("/"));
    const capture = await server.capture();
    await client.until("xxxx");
    await hangUp(client, server);
    let ended = false;
    void capture.ended.then(() => {
      ended = true;
    });
    await clock.advance(6_999);
    expect(ended).toBe(false);
    await clock.advance(1);
    expect(await capture.ended).toMatchObject({ kind: "answered", status: 200, body: undefined });
    expect(clock.pending()).toBe(0);
  });

  it("work that has sent nothing yet has all the time it takes", async () => {
    const clock = manualClock();
    let answer = (): void => {};
    const { server, client } = await start(
      (_req, res) => {
        res.writeHead(200, { "X-A": "1" });
        answer = () => res.end("late");
      },
      { clock, drainMs: 7_000 },
    );
    client.send(post("/"));
    const capture = await server.capture();
    await hangUp(client, server);
    expect(clock.pending()).toBe(0);
    answer();
    expect(bodyOf(await capture.ended)).toBe("late");
  });

  it("an answer that had ended before is whole, and letting it go harms nothing", async () => {
    const { server, client } = await start((_req, res) => {
      res.write("all ");
      res.end("there");
    });
    client.send(post("/"));
    const capture = await server.capture();
    const answer = await capture.ended;
    await hangUp(client, server);
    expect(bodyOf(answer)).toBe("all there");
    capture.release();
    await settle();
  });

  it("a transform in between is drained with its source", async () => {
    const answer = await leaveIn((res) => {
      const upper = new Transform({
        transform(chunk: Buffer, _encoding, done) {
          done(null, chunk);
        },
      });
      source().pipe(upper).pipe(res);
    });
    expect(bodyOf(answer)).toHaveLength(LENGTH);
  });
});
