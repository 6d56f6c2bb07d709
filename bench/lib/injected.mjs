/**
 * @module
 * Fastify without sockets, in every variant: what one request costs inside the process.
 *
 * `bare`: nothing. `hooks`: the hooks that a protection needs, all of them empty: what no plugin can cost less than. `map`, `map-sha`:
 * by hand, without and with a fingerprint. Anything else: oncekey with that fingerprint.
 */
import fastify from "fastify";
import { createIdempotency } from "oncekey";
import { idempotent } from "oncekey/http/fastify";
import { memoryStore } from "oncekey/stores/memory";
import { answerOf, NESTED } from "./bodies.mjs";
import { createFloor } from "./floor.mjs";

export const VARIANTS = ["bare", "hooks", "map", "map-sha", "off", "bytes", "request"];

const RECORDS = 400_000;

function addEmptyHooks(app) {
  app.addHook("onRoute", (route) => {
    route.preParsing = [(_request, _reply, payload, done) => done(null, payload)];
    route.preValidation = [(_request, _reply, done) => done()];
    route.preHandler = [(_request, _reply, done) => done()];
    route.onSend = [(_request, _reply, _payload, done) => done()];
    route.onError = [(_request, _reply, _error, done) => done()];
  });
}

function addFloor(app, withFingerprint) {
  const floor = createFloor(withFingerprint);
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

/** One request at a time: with a key of its own, or with the one that all replays share. */
export async function prepare(variant) {
  const app = fastify();
  if (variant === "hooks") addEmptyHooks(app);
  else if (variant.startsWith("map")) addFloor(app, variant === "map-sha");
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
  return {
    first() {
      keys += 1;
      return send(`key-${keys}`);
    },
    replay: () => send("the-one-key"),
  };
}
