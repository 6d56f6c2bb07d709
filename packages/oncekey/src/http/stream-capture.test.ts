import { describe, expect, it } from "vitest";
import { manualClock } from "../testing/manual-clock.js";
import {
  type ChunkSink,
  type ChunkSource,
  captureStream,
  type StreamCaptureOptions,
} from "./stream-capture.js";

const text = (bytes: Uint8Array | undefined): string | undefined => bytes && new TextDecoder().decode(bytes);
const bytes = (content: string): Uint8Array => new TextEncoder().encode(content);

/** A source that gives what it is told to, when it is told to. */
function source() {
  const waiting: { resolve(it: { done: boolean; value?: unknown }): void; reject(error: unknown): void }[] =
    [];
  const state = { stopped: false };
  const asked = async (): Promise<NonNullable<(typeof waiting)[number]>> => {
    for (;;) {
      const next = waiting.shift();
      if (next !== undefined) return next;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const chunks: ChunkSource = {
    next: () => new Promise((resolve, reject) => waiting.push({ resolve, reject })),
    stop() {
      state.stopped = true;
      for (const { resolve } of waiting.splice(0)) resolve({ done: true });
    },
  };
  return {
    chunks,
    state,
    give: async (value: unknown) => (await asked()).resolve({ done: false, value }),
    end: async () => (await asked()).resolve({ done: true }),
    fail: async (error: unknown) => (await asked()).reject(error),
  };
}

/** A sink that notes what it gets. */
function sink() {
  const got: string[] = [];
  let wake: (() => void) | undefined;
  const state = { full: false };
  const collected: ChunkSink = {
    begin: () => void got.push("begin"),
    push: (chunk) => void got.push(text(chunk) ?? ""),
    room: () => (state.full ? new Promise((resolve) => (wake = resolve)) : undefined),
    end: () => void got.push("end"),
    fail: () => void got.push("fail"),
  };
  return { got, collected, state, drain: () => wake?.() };
}

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

function start(given: Partial<StreamCaptureOptions> = {}) {
  const clock = manualClock();
  const from = source();
  const to = sink();
  const capture = captureStream(from.chunks, to.collected, {
    hold: "end",
    maxResultBytes: 1000,
    drainMs: 30_000,
    declaredLength: undefined,
    endless: false,
    ...given,
    clock,
  });
  return { clock, from, to, capture };
}

async function* values(...chunks: unknown[]): AsyncGenerator<unknown> {
  yield* chunks;
}

function gathered(chunks: readonly unknown[], given: Partial<StreamCaptureOptions> = {}) {
  const to = sink();
  const iterator = values(...chunks);
  const stopped = { stopped: false };
  const from: ChunkSource = {
    next: () => iterator.next(),
    stop() {
      stopped.stopped = true;
    },
  };
  const options = {
    hold: "end",
    maxResultBytes: 10,
    drainMs: 1,
    declaredLength: undefined,
    endless: false,
  } as const;
  const capture = captureStream(from, to.collected, { ...options, ...given, clock: manualClock() });
  return { to, capture, stopped };
}

describe("what is there at once", () => {
  it("stays whole and never flows", async () => {
    const { to, capture } = gathered([bytes("ab"), "cd"]);
    const ending = await capture.ended;
    expect(ending).toMatchObject({ kind: "whole" });
    expect(ending.kind === "whole" && text(ending.body)).toBe("abcd");
    capture.release();
    expect(capture.flows()).toBe(false);
    expect(to.got).toEqual([]);
  });

  it("flows when it is too large to be kept", async () => {
    const { to, capture } = gathered([bytes("0123456789"), bytes("a"), bytes("b")]);
    expect(await capture.ended).toEqual({ kind: "whole", body: undefined });
    expect(to.got).toEqual(["begin", "0123456789", "a", "b"]);
    capture.release();
    expect(to.got.at(-1)).toBe("end");
  });

  it("keeps its own copy of a buffer that is used again", async () => {
    const buffer = bytes("ab");
    async function* reusing(): AsyncGenerator<unknown> {
      yield buffer;
      buffer.fill(0);
    }
    const iterator = reusing();
    const options = {
      hold: "end",
      maxResultBytes: 10,
      drainMs: 1,
      declaredLength: undefined,
      endless: false,
    } as const;
    const capture = captureStream({ next: () => iterator.next(), stop: () => {} }, sink().collected, {
      ...options,
      clock: manualClock(),
    });
    const ending = await capture.ended;
    expect(ending.kind === "whole" && text(ending.body)).toBe("ab");
  });

  it("is broken by what is no bytes", async () => {
    const { capture, to } = gathered([bytes("ab"), 7]);
    expect(await capture.ended).toMatchObject({ kind: "broken", passed: false });
    expect(to.got).toEqual([]);
  });
});

describe("what comes later", () => {
  it("flows chunk by chunk, and its end waits", async () => {
    const { from, to, capture } = start();
    await turn();
    expect(to.got).toEqual(["begin"]);
    await from.give(bytes("ab"));
    await turn();
    expect(to.got).toEqual(["begin", "ab"]);
    await from.give(bytes("cd"));
    await from.end();
    const ending = await capture.ended;
    expect(ending.kind === "whole" && text(ending.body)).toBe("abcd");
    expect(to.got).toEqual(["begin", "ab", "cd"]);
    capture.release();
    expect(to.got).toEqual(["begin", "ab", "cd", "end"]);
  });

  it("holds the chunk that reaches the declared length", async () => {
    const { from, to, capture } = start({ declaredLength: 4 });
    await from.give(bytes("ab"));
    await from.give(bytes("cd"));
    await from.end();
    await capture.ended;
    expect(to.got).toEqual(["begin", "ab"]);
    capture.release();
    expect(to.got).toEqual(["begin", "ab", "cd", "end"]);
  });

  it("passes on what is more than was declared", async () => {
    const { from, to, capture } = start({ declaredLength: 2 });
    await from.give(bytes("ab"));
    await from.give(bytes("cd"));
    await from.end();
    const ending = await capture.ended;
    expect(ending.kind === "whole" && text(ending.body)).toBe("abcd");
    capture.release();
    expect(to.got).toEqual(["begin", "ab", "cd", "end"]);
  });

  it("is broken if it is shorter than was declared", async () => {
    const { from, to, capture } = start({ declaredLength: 5 });
    await from.give(bytes("ab"));
    await from.end();
    expect(await capture.ended).toMatchObject({ kind: "broken", passed: true });
    capture.release();
    expect(to.got).toEqual(["begin", "ab", "fail"]);
  });

  it("comes at the pace of the client", async () => {
    const { from, to, capture } = start();
    await turn();
    to.state.full = true;
    await from.give(bytes("ab"));
    await turn();
    const second = from.give(bytes("cd"));
    await turn();
    expect(to.got).toEqual(["begin", "ab"]);
    to.state.full = false;
    to.drain();
    await second;
    await from.end();
    await capture.ended;
    expect(to.got).toEqual(["begin", "ab", "cd"]);
  });

  it.each([[true], [false]])("fails with its source, having passed something: %s", async (passed) => {
    const { from, to, capture } = start();
    await turn();
    if (passed) await from.give(bytes("ab"));
    const error = new Error("gone");
    await from.fail(error);
    expect(await capture.ended).toEqual({ kind: "broken", error, passed });
    expect(to.got.at(-1)).toBe("fail");
    capture.release();
    expect(to.got).not.toContain("end");
  });

  it("is cut so that it does not look complete", async () => {
    const { from, to, capture } = start();
    await from.give(bytes("ab"));
    await turn();
    capture.cut(new Error("superseded"));
    expect(await capture.ended).toMatchObject({ kind: "broken" });
    expect(to.got).toEqual(["begin", "ab", "fail"]);
    expect(from.state.stopped).toBe(true);
  });
});

describe("a client that leaves", () => {
  it("does not keep the rest from being read", async () => {
    const { from, to, capture, clock } = start();
    await from.give(bytes("ab"));
    to.state.full = true;
    await turn();
    capture.leave();
    await from.give(bytes("cd"));
    await from.end();
    const ending = await capture.ended;
    expect(ending.kind === "whole" && text(ending.body)).toBe("abcd");
    capture.release();
    expect(to.got).toEqual(["begin", "ab"]);
    expect(clock.pending()).toBe(0);
  });

  it("is waited for no longer than drainMs", async () => {
    const { from, capture, clock } = start({ drainMs: 100 });
    await from.give(bytes("ab"));
    await turn();
    capture.leave();
    await turn();
    await clock.advance(100);
    expect(await capture.ended).toEqual({ kind: "whole", body: undefined });
    expect(from.state.stopped).toBe(true);
  });

  it("ends what is too large to be kept, at once or when it becomes so", async () => {
    for (const before of [true, false]) {
      const { from, capture } = start({ maxResultBytes: 3 });
      await from.give(bytes("abc"));
      if (before) await from.give(bytes("d"));
      await turn();
      capture.leave();
      if (!before) await from.give(bytes("d"));
      expect(await capture.ended).toEqual({ kind: "whole", body: undefined });
      expect(from.state.stopped).toBe(true);
    }
  });
});

describe("where everything is held", () => {
  it("flows never, and is whole in the end", async () => {
    const { from, to, capture } = start({ hold: "everything" });
    await from.give(bytes("ab"));
    await turn();
    await from.give(bytes("cd"));
    await from.end();
    const ending = await capture.ended;
    expect(ending.kind === "whole" && text(ending.body)).toBe("abcd");
    expect(to.got).toEqual([]);
  });

  it("outgrows what can be kept", async () => {
    const { from, capture } = start({ hold: "everything", maxResultBytes: 3 });
    await from.give(bytes("abcd"));
    expect(await capture.ended).toEqual({ kind: "outgrown" });
    expect(from.state.stopped).toBe(true);
  });

  it("does not wait for a stream of events", async () => {
    const { from, capture } = start({ hold: "everything", endless: true });
    expect(await capture.ended).toEqual({ kind: "outgrown" });
    expect(from.state.stopped).toBe(true);
  });
});
