import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { describe, it } from "vitest";
import { attachWork } from "../../src/core/work.js";
import { createExchange } from "../../src/http/exchange.js";
import { sendAnswer } from "../../src/http/node-headers.js";
import { captureNodeResponse, type NodeCapture } from "../../src/http/node-response.js";
import { type BoundRoute, bindHttpContract, type Reply } from "../../src/testing/http-contract/index.js";
import { contractStores } from "../support/contract-stores.js";

async function write(res: ServerResponse, reply: Reply): Promise<void> {
  switch (reply.kind) {
    case "json":
    case "bytes":
    case "empty":
    case "stream":
      res.statusCode = reply.status;
      for (const [n, v] of reply.headers) res.appendHeader(n, v);
      if (reply.kind === "json") {
        res.setHeader("Content-Type", "application/json");
        res.end(JSON.stringify(reply.value));
      } else if (reply.kind === "bytes") res.end(reply.body);
      else if (reply.kind === "empty") res.end();
      else {
        const s = Readable.from(reply.chunks());
        s.on("error", () => res.destroy());
        s.pipe(res);
      }
      return;
    case "redirect":
      res.statusCode = 303;
      res.setHeader("Location", reply.location);
      res.end();
      return;
    case "end-then-throw":
      res.statusCode = reply.status;
      res.setHeader("Content-Type", "application/json");
      res.end(JSON.stringify(reply.value));
      throw new Error("late");
    case "destroy":
      res.destroy();
      return;
    case "throw":
      throw Object.assign(new Error(reply.message), { status: reply.status });
  }
}

function matches(route: BoundRoute, path: string): boolean {
  return new RegExp(`^${(route.mount + route.path).replaceAll(/:\w+/g, "[^/]+")}$`).test(path);
}

async function readAll(req: IncomingMessage): Promise<Buffer> {
  const c: Buffer[] = [];
  for await (const x of req) c.push(x as Buffer);
  return Buffer.concat(c);
}

bindHttpContract(
  { describe, it },
  {
    ...contractStores,
    async listen({ routes, idempotency, outerHeaders }) {
      const made = routes.map((route) => ({
        route,
        exchange: createExchange(
          idempotency,
          route.options<IncomingMessage>((r, n) => r.headers[n] as string | undefined),
        ),
      }));
      const server = createServer(async (req, res) => {
        for (const [n, v] of outerHeaders()) res.appendHeader(n, v);
        const path = (req.url ?? "/").split("?")[0] ?? "/";
        const found = made.find(({ route }) => route.method === req.method && matches(route, path));
        if (found === undefined) {
          res.statusCode = 404;
          return void res.end();
        }
        const { route, exchange } = found;
        let bytes: Buffer | undefined;
        const handler = async (): Promise<void> => {
          try {
            bytes ??= await readAll(req);
            const body =
              route.parses === "json"
                ? JSON.parse(bytes.toString() || "null")
                : route.parses === "bytes"
                  ? bytes
                  : undefined;
            const reply = route.handle({ body, work: () => idempotency.workOf(req) });
            await write(res, reply instanceof Promise ? await reply : reply);
          } catch (error) {
            if (res.headersSent || res.writableEnded) return void res.destroy();
            res.statusCode = (error as { status?: number }).status ?? 500;
            res.end(String((error as Error).message));
          }
        };
        let capture: NodeCapture | undefined;
        const left = new AbortController();
        res.on("close", () => {
          if (!res.writableFinished) left.abort();
        });
        await exchange
          .handle(
            {
              carrier: req,
              method: req.method ?? "",
              target: req.url ?? "/",
              route: route.mount + route.path,
              lines: (name) => req.headersDistinct[name] ?? [],
              left: left.signal,
              async body(max) {
                bytes = await readAll(req);
                return bytes.length > max
                  ? { kind: "too-large", length: undefined }
                  : { kind: "bytes", bytes };
              },
            },
            {
              pass: () => void handler(),
              send: (answer) => sendAnswer(res, answer),
              async start(work, capturing) {
                attachWork(req, work);
                capture = captureNodeResponse(res, capturing);
                for (const [n, v] of capturing.headers) res.setHeader(n, v);
                void handler();
                return { answer: await capture.ended, before: capture.headersBefore };
              },
              release: () => capture?.release(),
              replaceWith: (answer) => capture?.replaceWith(answer) ?? false,
              cut: () => void res.destroy(),
            },
          )
          .catch(() => res.destroy());
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return {
        port: (server.address() as AddressInfo).port,
        close: () =>
          new Promise<void>((resolve) => {
            server.close(() => resolve());
            server.closeAllConnections();
          }),
      };
    },
  },
);
