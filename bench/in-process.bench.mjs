/**
 * @module
 * What one request costs inside the process: Fastify with `inject`, no sockets. The least of many small batches is shown,
 * which a busy machine disturbs little, and on a slow network stack shows what is the library's and what the sockets'.
 *
 * `node in-process.bench.mjs [batches]`.
 */
import fastify from "fastify";
import { createIdempotency } from "oncekey";
import { idempotent } from "oncekey/http/fastify";
import { memoryStore } from "oncekey/stores/memory";
import { answerOf, NESTED } from "./lib/bodies.mjs";
import { createFloor } from "./lib/floor.mjs";
import { section, table } from "./lib/report.mjs";

const batches = Number(process.argv[2] ?? 60);
const BATCH = 50;
const WARM = 8_000;
const RECORDS = 400_000;

function addFloor(app) {
  const floor = createFloor(true);
  app.addHook("preHandler", (request, reply, done) => {
    const begun = floor.begin(request.headers["idempotency-key"], request.body);
    if (begun.kind === "run") return done();
    reply.code(begun.status).send(begun.body);
  });
  app.addHook("onSend", (request, reply, payload, done) => {
    floor.end(request.headers["idempotency-key"], reply.statusCode, payload);
    done(null, payload);
  });
}

async function protect(app, fingerprint) {
  const store = memoryStore({ maxRecords: RECORDS, maxRecordsPerScope: RECORDS, maxBytes: 2 ** 30 });
  await app.register(idempotent(createIdempotency({ store, scope: "global" }), { fingerprint }));
}

async function prepare(variant) {
  const app = fastify();
  if (variant === "map-sha") addFloor(app);
  else if (variant !== "bare") await protect(app, variant);
  let count = 0;
  app.post("/orders", (_, reply) => {
    count += 1;
    reply.code(201).send(answerOf(count));
  });
  await app.ready();
  let keys = 0;
  const send = (key) =>
    app.inject({
      method: "POST",
      url: "/orders",
      headers: { "content-type": "application/json", "idempotency-key": key },
      payload: NESTED,
    });
  const first = () => {
    keys += 1;
    return send(`key-${keys}`);
  };
  const replay = () => send("the-one-key");
  for (let index = 0; index < WARM; index += 1) {
    await first();
    await replay();
  }
  return { variant, first, replay, firstUs: Number.POSITIVE_INFINITY, replayUs: Number.POSITIVE_INFINITY };
}

async function microseconds(send) {
  const began = performance.now();
  for (let index = 0; index < BATCH; index += 1) await send();
  return ((performance.now() - began) * 1000) / BATCH;
}

const prepared = [];
for (const variant of ["bare", "map-sha", "off", "bytes", "request"]) prepared.push(await prepare(variant));
for (let batch = 0; batch < batches; batch += 1) {
  for (const one of prepared) {
    one.firstUs = Math.min(one.firstUs, await microseconds(one.first));
    one.replayUs = Math.min(one.replayUs, await microseconds(one.replay));
  }
}

const [bare] = prepared;
section("fastify without sockets, nested body: the least of many batches");
table(
  ["variant", "first µs", "added µs", "replay µs", "added µs"],
  prepared.map(({ variant, firstUs, replayUs }) => [
    variant,
    firstUs.toFixed(0),
    (firstUs - bare.firstUs).toFixed(0),
    replayUs.toFixed(0),
    (replayUs - bare.replayUs).toFixed(0),
  ]),
);
process.exit(0);
