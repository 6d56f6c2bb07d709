import type { IncomingMessage, ServerResponse } from "node:http";
import { createIdempotency, notPerformed, type Policy } from "oncekey";
import { idempotent } from "oncekey/http/node";
import { memoryStore } from "oncekey/stores/memory";
import { describe, expect, it } from "vitest";
import { listen, post, type RawAnswer } from "./raw-http.js";

const KEY = 'Idempotency-Key: "k1"';

type Handler = (req: IncomingMessage, res: ServerResponse) => unknown;

interface Served {
  ask(path?: string): Promise<RawAnswer>;
  readonly thrown: unknown[];
  runs(): number;
}

async function serve(handler: Handler, policy: Policy = {}): Promise<Served> {
  const idempotency = createIdempotency({ store: memoryStore(), scope: "global" });
  let runs = 0;
  const listener = idempotent(idempotency, policy, (req, res) => {
    runs++;
    return handler(req, res);
  });
  const thrown: unknown[] = [];
  const server = await listen((req, res) => {
    res.setHeader("X-Outer", "1");
    listener(req, res).catch((error: unknown) => thrown.push(error));
  });
  return {
    thrown,
    runs: () => runs,
    async ask(path = "/") {
      const client = await server.connect();
      client.send(post(path, "", [KEY]));
      return client.answer();
    },
  };
}

describe("a handler that throws instead of answering", () => {
  const failure = new Error("broken");
  it.each<[string, Handler]>([
    [
      "throws",
      () => {
        throw failure;
      },
    ],
    ["rejects", () => Promise.reject(failure)],
    [
      "rejects after it has set headers",
      async (_req, res) => {
        res.setHeader("Content-Length", 10);
        throw failure;
      },
    ],
  ])("that %s gets a 500 sent, frees its key, and its error reaches the caller", async (_how, handler) => {
    const { ask, thrown, runs } = await serve(handler);
    for (const run of [1, 2]) {
      const sent = await ask();
      expect([sent.status, sent.header("content-length"), sent.header("x-outer")]).toEqual([500, "0", "1"]);
      expect(runs()).toBe(run);
      expect(thrown).toEqual(Array(run).fill(failure));
    }
  });

  it("in the middle of its answer has it cut", async () => {
    const { ask, thrown, runs } = await serve((_req, res) => {
      res.write("half");
      throw failure;
    });
    for (const run of [1, 2]) {
      await expect(ask()).rejects.toThrow("Connection closed");
      expect([runs(), thrown.length]).toEqual([run, run]);
    }
  });

  it("may say that nothing was performed, also under at-most-once", async () => {
    const { ask, runs } = await serve(
      () => {
        throw notPerformed("the card network refused the connection");
      },
      { guarantee: "at-most-once", acceptsLostWrites: true },
    );
    expect((await ask()).status).toBe(500);
    expect((await ask()).status).toBe(500);
    expect(runs()).toBe(2);
  });

  it("leaves the outcome unknown under at-most-once otherwise", async () => {
    const { ask, runs } = await serve(() => Promise.reject(failure), {
      guarantee: "at-most-once",
      acceptsLostWrites: true,
    });
    expect((await ask()).status).toBe(500);
    expect((await ask()).status).toBe(409);
    expect(runs()).toBe(1);
  });
});

it("a handler that throws after its answer has answered, and its error reaches the caller", async () => {
  const { ask, thrown, runs } = await serve((_req, res) => {
    res.statusCode = 201;
    res.end("made");
    throw new Error("late");
  });
  for (const replayed of [undefined, "true"]) {
    const sent = await ask();
    expect([sent.status, `${sent.body}`, sent.header("idempotency-replayed")]).toEqual([
      201,
      "made",
      replayed,
    ]);
  }
  expect([runs(), thrown.length]).toEqual([1, 1]);
});

it("a fault of the application's own functions is a 500, and reaches the caller", async () => {
  const idempotency = createIdempotency({ store: memoryStore(), scope: "global" });
  const thrown: unknown[] = [];
  const renderRefusal = (): never => {
    throw new Error("cannot render");
  };
  const listener = idempotent(idempotency, { renderRefusal }, (_req, res) => void res.end());
  const server = await listen(
    (req, res) => void listener(req, res).catch((error: unknown) => thrown.push(error)),
  );
  const client = await server.connect();
  client.send(post("/"));
  expect((await client.answer()).status).toBe(500);
  expect(thrown).toMatchObject([{ message: "cannot render" }]);
});

it("the operation is named by the whole path where a router has taken its mount off", async () => {
  const seen: string[] = [];
  const idempotency = createIdempotency({
    store: memoryStore(),
    scope: "global",
    onEvent: (event) => void (event.type === "claimed" && seen.push(event.operation)),
  });
  const listener = idempotent(idempotency, {}, (_req, res) => void res.end());
  const server = await listen((req, res) => {
    Object.assign(req, { originalUrl: req.url, url: "/" });
    return listener(req, res);
  });
  const client = await server.connect();
  client.send(post("/mounted/here?x=1", "", [KEY]));
  await client.answer();
  expect(seen).toEqual(["POST /mounted/here"]);
});

describe("a header with bytes beyond ASCII", () => {
  it.each([
    ["latin-1", "caf\u00e9; name=\u00ff\u00a0\u0080"],
    ["UTF-8, as a text of its bytes", Buffer.from("caf\u00e9 \u20ac").toString("latin1")],
  ])("in %s is replayed byte for byte", async (_, value) => {
    for (const write of [
      (res: ServerResponse) => res.setHeader("X-Name", value).end("done"),
      (res: ServerResponse) => res.writeHead(200, { "X-Name": value }).end("done"),
      (res: ServerResponse) => {
        res.setHeader("X-Name", value).write("do");
        res.end("ne");
      },
    ]) {
      const { ask, runs } = await serve((_req, res) => write(res));
      const [first, replay] = [await ask(), await ask()];
      expect([first.header("x-name"), replay.header("x-name")]).toEqual([value, value]);
      expect([replay.header("idempotency-replayed"), runs()]).toEqual(["true", 1]);
    }
  });
});
