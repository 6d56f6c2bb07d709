import { once } from "node:events";
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { gunzipSync } from "node:zlib";
import compression from "compression";
import express5, { type ErrorRequestHandler, type Express, type RequestHandler } from "express";
import express4 from "express4";
import { createIdempotency, type IdempotencyEvent } from "oncekey";
import { idempotent } from "oncekey/http/express";
import { memoryStore } from "oncekey/stores/memory";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listen, post, type RawAnswer } from "./raw-http.js";

const folder = mkdtempSync(join(tmpdir(), "oncekey-express-"));
const file = join(folder, "report.txt");
const LARGE = "report ".repeat(50_000);
beforeAll(() => writeFileSync(file, LARGE));
afterAll(() => rmSync(folder, { recursive: true }));

const KEY = 'Idempotency-Key: "k1"';

describe.each([
  ["Express 4", express4],
  ["Express 5", express5],
])("%s", (_name, express) => {
  interface Served {
    readonly events: readonly IdempotencyEvent[];
    /** Sends one request with the key and waits for its answer. */
    ask(path?: string, ...headers: string[]): Promise<RawAnswer>;
    runs(): number;
  }

  async function serve(
    handler: RequestHandler,
    build?: (app: Express, guard: RequestHandler) => void,
  ): Promise<Served> {
    const events: IdempotencyEvent[] = [];
    const idempotency = createIdempotency({
      store: memoryStore(),
      scope: "global",
      onEvent: (event) => events.push(event),
    });
    let runs = 0;
    const counted: RequestHandler = (req, res, next) => {
      runs++;
      return handler(req, res, next);
    };
    const app = express();
    // Prints errors otherwise.
    app.set("env", "test");
    if (build === undefined) app.post("/", idempotent(idempotency), counted);
    else {
      build(app, idempotent(idempotency));
      app.post("/", counted);
    }
    const server = await listen(app);
    return {
      events,
      runs: () => runs,
      async ask(path = "/", ...headers) {
        const client = await server.connect();
        client.send(post(path, "", [KEY, ...headers]));
        return client.answer();
      },
    };
  }

  const answers: [string, RequestHandler][] = [
    ["json", (_req, res) => void res.status(201).location("/orders/1").json({ id: 1 })],
    ["a number", (_req, res) => void res.json(0)],
    ["text", (_req, res) => void res.set("Vary", "Accept").send("text")],
    ["bytes", (_req, res) => void res.type("bin").send(Buffer.from([0, 255, 1]))],
    ["no content", (_req, res) => void res.sendStatus(204)],
    ["a redirect", (_req, res) => res.redirect(303, "/orders/1")],
    ["several links", (_req, res) => void res.append("Link", ["<a>", "<b>"]).end()],
    ["a file", (_req, res) => res.sendFile(file)],
    ["a file to keep", (_req, res) => res.download(file)],
    ["a pipe", (_req, res) => void createReadStream(file).pipe(res)],
    ["a pipeline", (_req, res) => void pipeline(createReadStream(file), res, () => {})],
    [
      "a loop of writes",
      async (_req, res) => {
        for (let part = 0; part < 40; part++) if (!res.write("x".repeat(16_384))) await once(res, "drain");
        res.end("end");
      },
    ],
    [
      "events",
      (_req, res) => {
        res.type("text/event-stream").flushHeaders();
        res.write("data: 1\n\n");
        setImmediate(() => res.end("data: 2\n\n"));
      },
    ],
    ["a known error", (_req, _res, next) => next(Object.assign(new Error("not so"), { status: 422 }))],
  ];

  it.each(answers)("gives a repeat the first answer: %s", async (_what, handler) => {
    const { ask, runs } = await serve(handler);
    const first = await ask();
    const repeat = await ask();
    expect(runs()).toBe(1);
    expect(repeat.header("idempotency-replayed")).toBe("true");
    expect(first.header("idempotency-replayed")).toBeUndefined();
    expect([repeat.status, repeat.reason]).toEqual([first.status, first.reason]);
    expect(repeat.body.equals(first.body)).toBe(true);
    expect(answerLines(repeat)).toEqual(answerLines(first));
  });

  /** All but those of the connection, of the site, of framing and of our own. */
  function answerLines({ headers }: RawAnswer): (readonly [string, string])[] {
    return headers.filter(
      ([name]) =>
        !/^(date|connection|keep-alive|transfer-encoding|content-length|content-security-policy|idempotency-.*)$/i.test(
          name,
        ),
    );
  }

  const custom: ErrorRequestHandler = (error, _req, res, next) => {
    if (res.headersSent) next(error);
    else res.status(500).set("X-Late", "1").json({ late: true });
  };
  const ends: [string, RequestHandler][] = [
    ["json", (_req, res) => void res.status(201).json({ ok: 1 })],
    [
      "writes",
      (_req, res) => {
        res.status(201).type("json").write('{"ok"');
        res.end(":1}");
      },
    ],
  ];
  const throws: [string, (answer: RequestHandler) => RequestHandler][] = [
    [
      "a throw",
      (answer) => (req, res, next) => {
        void answer(req, res, next);
        throw new Error("late");
      },
    ],
    [
      "a rejection",
      (answer) => async (req, res, next) => {
        try {
          void answer(req, res, next);
          await Promise.resolve();
          throw new Error("late");
        } catch (error) {
          next(error);
        }
      },
    ],
    [
      "next, later",
      (answer) => (req, res, next) => {
        void answer(req, res, next);
        setImmediate(() => next(new Error("late")));
      },
    ],
    [
      "another answer",
      (answer) => (req, res, next) => {
        void answer(req, res, next);
        void res.status(500).json({ late: true });
      },
    ],
  ];
  for (const [end, answer] of ends) {
    for (const [how, late] of throws) {
      it.each<[string, ErrorRequestHandler[]]>([
        ["default", []],
        ["custom", [custom]],
      ])(`an answer by ${end} survives ${how}, with the %s error handler`, async (_which, handlers) => {
        const { ask, runs } = await serve(late(answer), (app, guard) => {
          app.post("/", guard, late(answer));
          for (const handler of handlers) app.use(handler);
        });
        for (const replayed of [undefined, "true"]) {
          const sent = await ask();
          expect([sent.status, sent.reason, `${sent.body}`]).toEqual([201, "Created", '{"ok":1}']);
          expect([sent.header("x-late"), sent.header("idempotency-replayed")]).toEqual([undefined, replayed]);
        }
        expect(runs()).toBe(0);
      });
    }
  }

  it("an answer that fails half way is cut, and its repeat runs again", async () => {
    const { ask, runs, events } = await serve((_req, res) => {
      res.write("half");
      throw new Error("broken");
    });
    await expect(ask()).rejects.toThrow("Connection closed");
    expect(runs()).toBe(1);
    expect(events.map((event) => event.type)).toContain("released");
  });

  it.each<[string, RequestHandler[], RequestHandler[]]>([
    ["outside", [compression({ threshold: 0 })], []],
    ["inside", [], [compression({ threshold: 0 })]],
  ])("with compression %s every client gets what it can read", async (_where, outside, inside) => {
    const handler: RequestHandler = (_req, res) => void res.json({ text: LARGE });
    const { ask, runs } = await serve(handler, (app, guard) => app.post("/", ...outside, guard, ...inside));
    const gzip = "Accept-Encoding: gzip";
    for (const headers of [[gzip], [gzip], []]) {
      const sent = await ask("/", ...headers);
      const coding = sent.header("content-encoding");
      if (headers.length === 0) expect(coding).toBeUndefined();
      const body = coding === "gzip" ? gunzipSync(sent.body) : sent.body;
      expect(JSON.parse(body.toString())).toEqual({ text: LARGE });
    }
    expect(runs()).toBe(1);
  });

  it("names an operation by its route, whatever its parameters are called", async () => {
    const answer: RequestHandler = (req, res) => void res.json(req.params);
    const { ask, events } = await serve(answer, (app, guard) => {
      const router = express.Router();
      router.post("/:order", guard, answer);
      router.post(["/a/b", "/a/c"], guard, answer);
      app.use("/orders", router);
      app.use("/all", guard, (_req, res) => void res.end());
    });
    await ask("/orders/1");
    await ask("/orders/a/b");
    await ask("/all/of/it?x=1");
    const operations = events.filter((event) => event.type === "claimed").map((event) => event.operation);
    expect(operations).toEqual(["POST /orders/:", "POST /orders/a/b,/a/c", "POST /all/of/it"]);
  });

  it("tells operations apart that only look alike without the names of parameters", async () => {
    const named: RequestHandler = (req, res) => void res.json(String(req.route.path));
    const { ask, events } = await serve(named, (app, guard) => {
      app.post("/o/:id\\:cancel", guard, named);
      app.post("/o/:id\\:refund", guard, named);
      app.post(/^\/r.*cancel$/, guard, named);
      app.post(/^\/r.*refund$/, guard, named);
      const router = express.Router();
      router.post("/orders", guard, named);
      app.use("/t/:tenant", router);
    });
    const paths = [
      "/o/1:cancel",
      "/o/1:refund",
      "/r1cancel",
      "/r1refund",
      "/t/urn:a/orders",
      "/t/urn:b/orders",
    ];
    for (const path of paths) await ask(path);
    const operations = events.filter((event) => event.type === "claimed").map((event) => event.operation);
    expect(new Set(operations).size).toBe(paths.length);
  });

  it("leaves a fault of the application's own functions to the error handlers", async () => {
    const idempotency = createIdempotency({ store: memoryStore(), scope: "global" });
    const app = express();
    const seen: unknown[] = [];
    const renderRefusal = (): never => {
      throw new Error("cannot render");
    };
    app.post("/", idempotent(idempotency, { renderRefusal }), (_req, res) => void res.end());
    app.use(((error, _req, res, _next) => {
      seen.push(error);
      res.status(503).end();
    }) satisfies ErrorRequestHandler);
    const client = await (await listen(app)).connect();
    client.send(post("/"));
    expect((await client.answer()).status).toBe(503);
    expect(seen).toMatchObject([{ message: "cannot render" }]);
  });
});
