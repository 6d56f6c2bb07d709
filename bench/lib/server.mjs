/**
 * @module
 * One server under test, in a process of its own: `node lib/server.mjs <framework> <variant>`.
 *
 * It tells its port, and when asked the CPU time it has used and the longest stall of its event loop.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { serve as serveHono } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { createIdempotency } from "oncekey";
import { idempotent as idempotentExpress } from "oncekey/http/express";
import { idempotent as idempotentFastify } from "oncekey/http/fastify";
import { idempotent as idempotentHono } from "oncekey/http/hono";
import { memoryStore } from "oncekey/stores/memory";
import { answerOf } from "./bodies.mjs";
import { createFloor } from "./floor.mjs";

const [framework, variant] = process.argv.slice(2);
let runs = 0;
const SLOW_MS = 200;

/** `map`, `map-sha`: by hand. `off`, `bytes`, `request`: oncekey with that fingerprint. Anything else: bare. */
const floor = variant.startsWith("map") ? createFloor(variant === "map-sha") : undefined;
const guarded = ["off", "bytes", "request"].includes(variant);
// No larger than needed: a table for millions of keys costs a page fault for almost each of the first ones.
const store = memoryStore({ maxRecords: 500_000, maxRecordsPerScope: 500_000, maxBytes: 8 * 1024 ** 3 });
const idempotency = guarded ? createIdempotency({ store, scope: "global" }) : undefined;
const options = { fingerprint: guarded ? variant : undefined, onInFlight: { waitMs: 20_000 } };

function run() {
  runs += 1;
  return answerOf(runs);
}

const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** What the requests of one key wait for where nothing protects them: the same held answer. */
const shared = new Map();
function slowShared(key) {
  if (!shared.has(key)) shared.set(key, later(SLOW_MS).then(run));
  return shared.get(key);
}

async function startFastify() {
  const app = fastify();
  if (idempotency) await app.register(idempotentFastify(idempotency, options));
  app.get("/other", (_, reply) => reply.send({ ok: true }));
  if (floor) {
    app.addHook("preHandler", (request, reply, done) => {
      const begun = floor.begin(request.headers["idempotency-key"], request.body);
      if (begun.kind === "run") return done();
      reply
        .code(begun.status)
        .header("Idempotency-Replayed", "true")
        .header("content-type", "application/json")
        .send(begun.body ?? "");
    });
    app.addHook("onSend", (request, reply, payload, done) => {
      floor.end(request.headers["idempotency-key"], reply.statusCode, payload);
      done(null, payload);
    });
  }
  app.post("/orders", (_, reply) => {
    reply.code(201).send(run());
  });
  app.post("/slow", async (request, reply) => {
    reply.code(201);
    return idempotency ? later(SLOW_MS).then(run) : slowShared(request.headers["idempotency-key"]);
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  return app.server.address().port;
}

function startExpress() {
  const app = express();
  app.use(express.json());
  app.get("/other", (_, res) => res.json({ ok: true }));
  const before = [];
  if (idempotency) before.push(idempotentExpress(idempotency, options));
  if (floor) {
    before.push((req, res, next) => {
      const key = req.headers["idempotency-key"];
      const begun = floor.begin(key, req.body);
      if (begun.kind !== "run")
        return res.status(begun.status).set("Idempotency-Replayed", "true").json(begun.body);
      const json = res.json.bind(res);
      res.json = (body) => {
        floor.end(key, res.statusCode, body);
        return json(body);
      };
      next();
    });
  }
  app.post("/orders", ...before, (_, res) => res.status(201).json(run()));
  app.post("/slow", ...before, async (req, res) => {
    const key = req.headers["idempotency-key"];
    res.status(201).json(await (idempotency ? later(SLOW_MS).then(run) : slowShared(key)));
  });
  return new Promise((resolve) => {
    const server = app.listen(0, "127.0.0.1", () => resolve(server.address().port));
  });
}

function startHono() {
  const app = new Hono();
  app.get("/other", (c) => c.json({ ok: true }));
  const before = [];
  if (idempotency) before.push(idempotentHono(idempotency, options));
  if (floor) {
    before.push(async (c, next) => {
      const key = c.req.header("idempotency-key");
      const begun = floor.begin(key, await c.req.json());
      if (begun.kind !== "run")
        return c.body(begun.body ?? "", begun.status, { "Idempotency-Replayed": "true" });
      await next();
      floor.end(key, c.res.status, await c.res.clone().text());
    });
  }
  app.post("/orders", ...before, async (c) => {
    await c.req.json();
    return c.json(run(), 201);
  });
  return new Promise((resolve) => {
    serveHono({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => resolve(port));
  });
}

const starters = { fastify: startFastify, express: startExpress, hono: startHono };
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const port = await starters[framework]();
process.send({ port });
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send({ cpuMs: (user + system) / 1000, runs, stallMs: delay.max / 1e6 });
  delay.reset();
});
process.on("disconnect", () => process.exit(0));
