import { describe, expect, it } from "vitest";
import { manualClock } from "../testing/manual-clock.js";
import type { Capturing } from "./port.js";
import { type Caller, captureThrown, captureWebResponse, responseOf } from "./web-response.js";

const CAPTURING: Capturing = {
  hold: "end",
  maxResultBytes: 100,
  drainMs: 1000,
  clock: manualClock(),
  headers: [],
};

function caller() {
  const got: { answer?: Response; error?: unknown } = {};
  const its: Caller = {
    answer(response) {
      expect(got).toEqual({});
      got.answer = response;
    },
    fail(error) {
      expect(got).toEqual({});
      got.error = error;
    },
  };
  return { got, its };
}

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

describe("an answer that is whole", () => {
  it("is held until it is let go, and then what it was", async () => {
    const { got, its } = caller();
    const response = new Response("made", { status: 201, statusText: "Done", headers: { Location: "/1" } });
    const capture = captureWebResponse(response, CAPTURING, its);
    const ended = await capture.ended;
    expect(ended).toMatchObject({ kind: "answered", status: 201 });
    expect(ended.kind === "answered" && ended.headers).toContainEqual(["location", "/1"]);
    await settle();
    expect(got.answer).toBeUndefined();
    capture.release();
    expect([got.answer?.status, got.answer?.statusText, await got.answer?.text()]).toEqual([
      201,
      "Done",
      "made",
    ]);
    expect(got.answer?.headers.get("content-type")).toBe("text/plain;charset=UTF-8");
  });

  it("has a length of its own where it was a stream that is chunked", async () => {
    const { got, its } = caller();
    const headers = { "Transfer-Encoding": "chunked", "X-Kept": "1" };
    const there = new ReadableStream({
      start(controller) {
        controller.enqueue(Uint8Array.of(97));
        controller.close();
      },
    });
    const capture = captureWebResponse(new Response(there, { headers }), CAPTURING, its);
    await capture.ended;
    capture.release();
    expect([...(got.answer?.headers ?? [])]).toEqual([["x-kept", "1"]]);
  });

  it("can be replaced", async () => {
    const { got, its } = caller();
    const capture = captureWebResponse(new Response("mine"), CAPTURING, its);
    await capture.ended;
    expect(capture.replaceWith(new Response("theirs"))).toBe(true);
    expect(await got.answer?.text()).toBe("theirs");
  });

  it("is itself if it has no body", async () => {
    const { got, its } = caller();
    const response = new Response(null, { status: 204 });
    const capture = captureWebResponse(response, CAPTURING, its);
    expect(await capture.ended).toMatchObject({ kind: "answered", status: 204, body: new Uint8Array(0) });
    capture.release();
    expect(got.answer).toBe(response);
  });

  it.each([["a body"], [null]])("carries the headers of the exchange, with %s", async (body) => {
    const { got, its } = caller();
    const capturing: Capturing = { ...CAPTURING, headers: [["Idempotency-Degraded", "store-unavailable"]] };
    const capture = captureWebResponse(new Response(body), capturing, its);
    const ended = await capture.ended;
    expect(ended.kind === "answered" && ended.headers.map(([name]) => name)).not.toContain(
      "idempotency-degraded",
    );
    capture.release();
    expect(got.answer?.headers.get("idempotency-degraded")).toBe("store-unavailable");
  });

  it("keeps each cookie's line", async () => {
    const { got, its } = caller();
    const headers = new Headers([
      ["Set-Cookie", "a=1"],
      ["Set-Cookie", "b=2"],
    ]);
    const capture = captureWebResponse(new Response("x", { headers }), CAPTURING, its);
    await capture.ended;
    capture.release();
    expect(got.answer?.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  });
});

describe("an answer that takes its time", () => {
  it("leaves at once, and only its end waits", async () => {
    const { got, its } = caller();
    let more: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        more = controller;
      },
    });
    const capture = captureWebResponse(new Response(body), CAPTURING, its);
    await settle();
    const reader = got.answer?.body?.getReader();
    more?.enqueue(Buffer.from("ab"));
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("ab");
    more?.close();
    await capture.ended;
    const end = reader?.read();
    const ended = await Promise.race([end, settle()]);
    expect(ended).toBeUndefined();
    expect(capture.replaceWith(new Response("theirs"))).toBe(false);
    capture.release();
    expect((await end)?.done).toBe(true);
  });

  it("goes on when its reader has left", async () => {
    const { got, its } = caller();
    const left = deferred();
    async function* parts(): AsyncGenerator<Uint8Array> {
      await settle();
      yield Buffer.from("ab");
      await left.promise;
      yield Buffer.from("cd");
    }
    const capture = captureWebResponse(new Response(ReadableStream.from(parts()) as never), CAPTURING, its);
    await settle();
    await got.answer?.body?.cancel();
    left.resolve();
    const ended = await capture.ended;
    expect(ended.kind === "answered" && Buffer.from(ended.body ?? []).toString()).toBe("abcd");
    capture.release();
  });
});

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

describe("what is no answer", () => {
  it("is a body that fails before anything has left: its error reaches the caller", async () => {
    const { got, its } = caller();
    const error = new Error("no file");
    const body = new ReadableStream({
      pull: (controller) => controller.error(error),
    });
    const capture = captureWebResponse(new Response(body), CAPTURING, its);
    expect(await capture.ended).toEqual({ kind: "aborted", status: 200, thrown: error });
    capture.release();
    expect(got.error).toBe(error);
  });

  it("is a body that somebody has read", async () => {
    const response = new Response("a");
    await response.text();
    expect(() => captureWebResponse(response, CAPTURING, caller().its)).toThrow(TypeError);
  });

  it("is what was thrown, which the caller gets in the end", async () => {
    const { got, its } = caller();
    const capture = captureThrown("why", undefined, its);
    expect(await capture.ended).toEqual({ kind: "aborted", status: undefined, thrown: "why" });
    expect(got).toEqual({});
    capture.release();
    expect(got.error).toBe("why");
  });
});

describe("responseOf", () => {
  it("replaces what outer layers set, and adds to the lists they share", () => {
    const before = [
      ["vary", "Origin"],
      ["etag", "old"],
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
    ] as const;
    const headers = [
      ["ETag", "new"],
      ["Vary", "Accept"],
      ["X-Part", "1"],
      ["X-Part", "2"],
    ] as const;
    const response = responseOf({ status: 201, headers, body: Buffer.from("a") }, before);
    expect(response.headers.get("vary")).toBe("Origin, Accept");
    expect(response.headers.get("etag")).toBe("new");
    expect(response.headers.get("x-part")).toBe("1, 2");
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  });

  it("has no body where there is none, so that nobody gives it a type", () => {
    expect(responseOf({ status: 200, headers: [], body: new Uint8Array(0) }, []).body).toBeNull();
    expect(responseOf({ status: 204, headers: [], body: new Uint8Array(0) }, []).status).toBe(204);
  });
});
